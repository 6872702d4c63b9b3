"""What a user holds: lakes, tables, views and scans."""
