"""AWS Glue's data catalog as a catalog, by its own protocol, signed here, without boto3."""
