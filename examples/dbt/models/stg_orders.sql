{{ config(materialized='view') }}
select order_id, customer, status, price, ordered_at, updated_at, to_date(ordered_at) as ordered_on
from {{ ref('raw_orders') }}
