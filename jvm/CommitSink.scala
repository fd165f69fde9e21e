/** Rows to Kafka records and to stores exactly once, in micro-batches: `writeStream.format("headrace.CommitSink")`.
  *
  * Options: `spec`, a JSON object (see SinkSpec), and `kafka.*` for the client. Rows are as LogSink describes them; with
  * stores `partition` is always there, and after it a column for each store (see StoreFiles). */
package headrace

import java.util

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** `id` names the flow, to the broker and in the topic of commits. `weaker`: the guarantee of topics that are written
  * at-least-once or at-most-once; all others, and dead letters with them, exactly-once. `stores`: their labels, in the
  * order they are committed in; `staged`: the folder of their rows. `plans`: the folder of the checkpoint's
  * plans; `planned`: the newest that was in it when the run was started. `known`: runs that the flow may be taken from;
  * None: from whoever has it. */
case class SinkSpec(id: String, commits: String, weaker: Map[String, String], stores: Seq[String], staged: String,
    plans: String, planned: Long, known: Option[Set[String]], kafka: Map[String, String])

object SinkSpec {
  def parse(options: CaseInsensitiveStringMap): SinkSpec = {
    val o = new ObjectMapper().readTree(options.get("spec"))
    val kafka = options.asCaseSensitiveMap.asScala.collect { case (k, v) if k.startsWith("kafka.") => k.drop(6) -> v }
    val weaker = o.get("weaker").properties.asScala.map(e => e.getKey -> e.getValue.asText)
    val stores = o.get("stores").elements.asScala.map(_.asText).toSeq
    val known = Option(o.get("known")).map(_.elements.asScala.map(_.asText).toSet)
    SinkSpec(o.get("id").asText, o.get("commits").asText, weaker.toMap, stores, o.get("staged").asText,
      o.get("plans").asText, o.get("planned").asLong, known, kafka.toMap)
  }
}

class CommitSink extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType // the query's, whatever it is
  override def getTable(schema: StructType, partitioning: Array[Transform], properties: util.Map[String, String]): Table =
    new CommitTable(SinkSpec.parse(new CaseInsensitiveStringMap(properties)))
}

class CommitTable(spec: SinkSpec) extends Table with SupportsWrite {
  override def name: String = s"commits of ${spec.id}"
  override def schema: StructType = new StructType
  override def capabilities: util.Set[TableCapability] = util.EnumSet.of(TableCapability.STREAMING_WRITE)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = new WriteBuilder with SupportsStreamingUpdateAsAppend {
    override def build(): Write = new Write {
      override def toStreaming: StreamingWrite = new CommitWrite(Transactions.here(spec, info))
    }
  }
}

/** The driver's side; Spark makes one for each batch. */
class CommitWrite(transaction: Transaction) extends StreamingWrite {
  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = new CommitWriters(transaction.run)
  override def useCommitCoordinator: Boolean = false // a task that runs twice spoils the transaction anyway
  override def commit(batch: Long, told: Array[WriterCommitMessage]): Unit = transaction.commit(batch, StoreFiles.byStore(told.toSeq))
  override def abort(batch: Long, told: Array[WriterCommitMessage]): Unit = transaction.close()
}

class CommitWriters(run: String) extends StreamingDataWriterFactory {
  override def createWriter(partition: Int, task: Long, batch: Long): DataWriter[InternalRow] = {
    val transaction = Transactions.of(run)
    new CommitWriter(transaction, transaction.files.map(_.writers(batch, partition, task)), batch)
  }
}

/** A task's side. Its rows are safe when the driver commits, so it waits for no acknowledgement. */
class CommitWriter(transaction: Transaction, stores: Option[StoreWriters], batch: Long) extends DataWriter[InternalRow] {
  private val wanted = transaction.open(batch)
  private val dies = Failpoint.armed("after-rows", batch)
  private var rows = 0

  override def write(row: InternalRow): Unit = if (wanted) {
    if (row.isNullAt(0)) stores.get.write(row) else transaction.send(row)
    if (dies) {
      rows += 1
      if (rows == CommitWriter.Some) Failpoint.reach("after-rows", batch)(transaction.flush())
    }
  }

  override def commit(): WriterCommitMessage = stores.map(own => StoreMessage(own.close())).orNull
  override def abort(): Unit = transaction.spoil()
  override def close(): Unit = stores.foreach(_.close()) // of a task that failed they are still open
}

object CommitWriter {
  /** After so many rows of a task it dies at after-rows: some are written, some are not. */
  private val Some = 10
}
