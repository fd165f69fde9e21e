/** Rows on their way to stores: each task writes those of a store to a Parquet file of its own, `<folder>/<batch>/<store>/`.
  *
  * Such rows have a struct in the column of their store, and null in those of others and in that of the topic. */
package headrace

import java.io.File

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileUtil
import org.apache.hadoop.mapreduce.{Job, TaskAttemptID}
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.execution.datasources.{OutputWriter, OutputWriterFactory}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.StructType

/** The files that a task has written, by store. */
case class StoreMessage(files: Map[Int, String]) extends WriterCommitMessage

/** Shared by the tasks of a query. */
class StoreFiles(folder: String, row: StructType, session: SparkSession) {
  import StoreFiles._

  private val stores = row.fields.drop(First).map(field => Format(field.dataType.asInstanceOf[StructType], session))

  def writers(batch: Long, partition: Int, task: Long): StoreWriters = new StoreWriters(store => {
    val path = new File(folder, s"$batch/$store/part-$partition-$task.parquet")
    stores(store).open(path.getPath)
  }, stores.map(_.schema.length))

  /** After the batch's commit nobody needs them; a store may have moved them away. What a crash leaves is removed when
    * the flow starts again. */
  def remove(batch: Long): Unit = FileUtil.fullyDelete(new File(folder, batch.toString))
}

object StoreFiles {
  /** The first store's column, after those of a record (LogSink). */
  val First = 6

  /** By store, the files of all tasks in the order of their partitions. */
  def byStore(told: Seq[WriterCommitMessage]): Seq[(Int, Seq[String])] =
    told.collect { case StoreMessage(files) => files.toSeq }.flatten.groupMap(_._1)(_._2).toSeq.sortBy(_._1)

  /** How rows of one schema are written, by Spark's own writer. */
  private case class Format(schema: StructType, conf: Configuration, factory: OutputWriterFactory) {
    def open(path: String): OutputWriter = factory.newInstance(path, schema, new TaskAttemptContextImpl(conf, new TaskAttemptID))
  }

  private object Format {
    def apply(schema: StructType, session: SparkSession): Format = {
      val job = Job.getInstance(session.sessionState.newHadoopConf())
      val factory = new ParquetFileFormat().prepareWrite(session, job, Map.empty, schema)
      Format(schema, job.getConfiguration, factory)
    }
  }
}

/** Of one task; a file is opened with its first row. */
class StoreWriters(open: Int => OutputWriter, widths: Array[Int]) {
  private val writers = new Array[OutputWriter](widths.length)

  def write(row: InternalRow): Unit = {
    var store = 0
    while (row.isNullAt(StoreFiles.First + store)) store += 1
    if (writers(store) == null) writers(store) = open(store)
    writers(store).write(row.getStruct(StoreFiles.First + store, widths(store)))
  }

  def close(): Map[Int, String] = writers.indices.filter(writers(_) != null).map { store =>
    val written = writers(store)
    writers(store) = null
    written.close()
    store -> written.path
  }.toMap
}
