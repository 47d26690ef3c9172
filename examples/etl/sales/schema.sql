-- Purpose: the warehouse tables, made by the first load. They live in a schema of their own, so that they
-- meet no table of the application where warehouse and application share a database.
CREATE SCHEMA IF NOT EXISTS warehouse;

CREATE TABLE warehouse.daily_sales (
    sales_date    date           NOT NULL,
    customer_kind text           NOT NULL CHECK (customer_kind IN ('new', 'returning')),
    basket        text           NOT NULL,
    orders        integer        NOT NULL CHECK (orders > 0),
    cds           integer        NOT NULL CHECK (cds >= orders),
    revenue       numeric(12, 2) NOT NULL CHECK (revenue > 0),
    source_date   date           NOT NULL,
    execution_id  text           NOT NULL,
    loaded_at     timestamptz    NOT NULL DEFAULT now(),
    PRIMARY KEY (sales_date, customer_kind, basket)
);

CREATE TABLE warehouse.rejected_sales (
    sales_date   date    NOT NULL,
    line_number  integer NOT NULL,
    line         text    NOT NULL,
    reason       text    NOT NULL,
    execution_id text    NOT NULL,
    PRIMARY KEY (sales_date, line_number)
);
