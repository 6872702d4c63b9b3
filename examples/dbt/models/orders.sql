-- Upserts by key: a second run merges what changed since the first.
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='order_id') }}
select order_id, customer, status, price, ordered_at, updated_at
from {{ ref('stg_orders') }}
{% if is_incremental() %}
where updated_at > (select max(updated_at) from {{ this }})
{% endif %}
