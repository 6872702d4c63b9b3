{% snapshot orders_history %}
{{ config(target_schema='shop', unique_key='order_id', strategy='timestamp', updated_at='updated_at', file_format='iceberg') }}
select * from {{ ref('stg_orders') }}
{% endsnapshot %}
