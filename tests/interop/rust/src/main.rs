//! One step of iceberg-rust's client at a REST catalog, for the tests of frazil: `URI VERB NAMESPACE.TABLE [JSON]`.
//!
//! `rows` prints what it read as JSON; everything else prints nothing. A failure is a text on standard error.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, new_null_array};
use futures::TryStreamExt;
use iceberg::arrow::{RecordBatchPartitionSplitter, schema_to_arrow_schema};
use iceberg::io::LocalFsStorageFactory;
use iceberg::spec::{DataFile, DataFileFormat, NestedField, PrimitiveType, Schema, Type};
use iceberg::table::Table;
use iceberg::transaction::{AddColumn, ApplyTransactionAction, Transaction};
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::ParquetWriterBuilder;
use iceberg::writer::file_writer::location_generator::{DefaultFileNameGenerator, DefaultLocationGenerator};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::partitioning::PartitioningWriter;
use iceberg::writer::partitioning::fanout_writer::FanoutWriter;
use iceberg::writer::{IcebergWriter, IcebergWriterBuilder};
use iceberg::{Catalog, CatalogBuilder, TableCreation, TableIdent};
use iceberg_catalog_rest::{REST_CATALOG_PROP_URI, RestCatalogBuilder};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [uri, verb, name, rest @ ..] = given.as_slice() else {
        return Err("usage: URI VERB NAMESPACE.TABLE [JSON]".into());
    };
    let catalog = RestCatalogBuilder::default()
        .with_storage_factory(Arc::new(LocalFsStorageFactory))
        .load(
            "served",
            HashMap::from([(REST_CATALOG_PROP_URI.to_string(), uri.clone())]),
        )
        .await?;
    let ident = TableIdent::from_strs(name.split('.'))?;
    let more: Value = rest
        .first()
        .map_or(Ok(Value::Null), |text| serde_json::from_str(text))?;
    match verb.as_str() {
        "create" => create(&catalog, &ident, &more).await,
        "append" => append(&catalog, &ident, &more).await,
        "add-column" => {
            let table = catalog.load_table(&ident).await?;
            let column = AddColumn::optional(text(&more)?, Type::Primitive(PrimitiveType::Long));
            let changes = Transaction::new(&table);
            changes
                .update_schema()
                .add_column(column)
                .apply(changes)?
                .commit(&catalog)
                .await?;
            Ok(())
        }
        "set" => {
            let table = catalog.load_table(&ident).await?;
            let changes = Transaction::new(&table);
            let mut action = changes.update_table_properties();
            for (key, value) in more.as_object().ok_or("an object is needed")? {
                action = action.set(key.clone(), text(value)?);
            }
            action.apply(changes)?.commit(&catalog).await?;
            Ok(())
        }
        "keep-last" => {
            let table = catalog.load_table(&ident).await?;
            let changes = Transaction::new(&table);
            let action = changes.expire_snapshots().expire_older_than_ms(i64::MAX).retain_last(1);
            action.apply(changes)?.commit(&catalog).await?;
            Ok(())
        }
        "rename" => {
            catalog
                .rename_table(&ident, &TableIdent::from_strs(text(&more)?.split('.'))?)
                .await?;
            Ok(())
        }
        "drop" => Ok(catalog.drop_table(&ident).await?),
        "rows" => rows(&catalog.load_table(&ident).await?).await,
        other => Err(format!("no such verb: {other}").into()),
    }
}

async fn create(catalog: &dyn Catalog, ident: &TableIdent, version: &Value) -> Outcome<()> {
    let schema = Schema::builder()
        .with_fields(vec![
            NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
            NestedField::optional(2, "kind", Type::Primitive(PrimitiveType::String)).into(),
        ])
        .build()?;
    // The request has no place for the version but among the properties, where the client does not put it by itself.
    let version = ("format-version".to_string(), version.as_u64().unwrap_or(2).to_string());
    let creation = TableCreation::builder()
        .name(ident.name().to_string())
        .schema(schema)
        .properties([version])
        .build();
    catalog.create_table(ident.namespace(), creation).await?;
    Ok(())
}

async fn append(catalog: &dyn Catalog, ident: &TableIdent, rows: &Value) -> Outcome<()> {
    let table = catalog.load_table(ident).await?;
    let files = written(&table, batch(&table, rows)?).await?;
    let changes = Transaction::new(&table);
    changes
        .fast_append()
        .add_data_files(files)
        .apply(changes)?
        .commit(catalog)
        .await?;
    Ok(())
}

/// The rows, as a batch of the table's columns; columns other than `id` and `kind` are null.
fn batch(table: &Table, rows: &Value) -> Outcome<RecordBatch> {
    let rows = rows.as_array().ok_or("rows are needed")?;
    let schema = Arc::new(schema_to_arrow_schema(table.metadata().current_schema())?);
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match field.name().as_str() {
            "id" => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row[0].as_i64()))),
            "kind" => Arc::new(StringArray::from_iter(rows.iter().map(|row| row[1].as_str()))),
            _ => new_null_array(field.data_type(), rows.len()),
        }
    });
    let columns: Vec<ArrayRef> = columns.collect();
    Ok(RecordBatch::try_new(schema, columns)?)
}

async fn written(table: &Table, batch: RecordBatch) -> Outcome<Vec<DataFile>> {
    let metadata = table.metadata();
    let places = DefaultLocationGenerator::new(metadata)?;
    let names = DefaultFileNameGenerator::new(uuid::Uuid::new_v4().to_string(), None, DataFileFormat::Parquet);
    let parquet = ParquetWriterBuilder::new(WriterProperties::default(), metadata.current_schema().clone());
    let rolling = RollingFileWriterBuilder::new_with_default_file_size(parquet, table.file_io().clone(), places, names);
    let builder = DataFileWriterBuilder::new(rolling);
    let spec = metadata.default_partition_spec().clone();
    if spec.is_unpartitioned() {
        let mut writer = builder.build(None).await?;
        writer.write(batch).await?;
        return Ok(writer.close().await?);
    }
    let splitter = RecordBatchPartitionSplitter::try_new_with_computed_values(metadata.current_schema().clone(), spec)?;
    let mut writer = FanoutWriter::new(builder);
    for (key, part) in splitter.split(&batch)? {
        writer.write(key, part).await?;
    }
    Ok(writer.close().await?)
}

async fn rows(table: &Table) -> Outcome<()> {
    let stream = table.scan().select(["id", "kind"]).build()?.to_arrow().await?;
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    let mut found: Vec<Value> = Vec::new();
    for batch in &batches {
        let (ids, kinds) = (
            batch.column(0).as_primitive::<Int64Type>(),
            batch.column(1).as_string::<i32>(),
        );
        for at in 0..batch.num_rows() {
            let id = ids.is_valid(at).then(|| ids.value(at));
            let kind = kinds.is_valid(at).then(|| kinds.value(at));
            found.push(json!([id, kind]));
        }
    }
    println!("{}", Value::Array(found));
    Ok(())
}

fn text(value: &Value) -> Outcome<String> {
    Ok(value.as_str().ok_or("a text is needed")?.to_string())
}
