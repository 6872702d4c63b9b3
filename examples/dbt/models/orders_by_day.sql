-- Replaces the partitions it has rows for, and no others.
{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['ordered_on']) }}
select count(*) as orders, sum(price) as turnover, ordered_on
from {{ ref('stg_orders') }}
group by ordered_on
