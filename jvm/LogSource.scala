/** Kafka topics as one stream of typed rows: `spark.readStream.format("headrace.LogSource")`.
  *
  * Options: `spec`, a JSON object (see LogSpec), and `kafka.*` for the client. */
package headrace

import java.util

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder}
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

class LogSource extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = LogSpec.parse(options).schema
  override def getTable(schema: StructType, partitioning: Array[Transform], properties: util.Map[String, String]): Table =
    new LogTable(LogSpec.parse(new CaseInsensitiveStringMap(properties)))
}

class LogTable(spec: LogSpec) extends Table with SupportsRead {
  override def name: String = spec.topics.map(_.topic).mkString("log of ", ", ", "")
  override def schema: StructType = spec.schema
  override def capabilities: util.Set[TableCapability] = util.EnumSet.of(TableCapability.MICRO_BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () => new Scan {
    override def readSchema: StructType = spec.schema
    override def description: String = name
    override def toMicroBatchStream(checkpoint: String): MicroBatchStream = new LogStream(spec, checkpoint)
  }
}
