"""Home batches as Dagster partitions."""

import dagster as dg

batches = dg.DynamicPartitionsDefinition(name="batches")
