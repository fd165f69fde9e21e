/** Loads the classes that a driver loads, by running a small query: the JVM archives them when this ends, so that later
  * ones need not find, read and verify them again (src/headrace/spark/archive.py). */
package headrace

import java.io.File
import java.util.jar.JarFile

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.kafka.clients.admin.Admin
import org.apache.kafka.clients.producer.KafkaProducer
import org.apache.kafka.common.serialization.ByteArraySerializer
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.Trigger

object Warm {
  /** Of what the query does not touch: all there is of these. */
  private val whole = Seq("headrace/", "org/apache/spark/sql/headrace/", "org/apache/spark/deploy/SparkSubmit",
    "org/apache/spark/api/python/", "org/apache/spark/sql/execution/streaming/", "org/apache/kafka/clients/consumer/",
    "org/apache/kafka/clients/producer/", "org/apache/kafka/common/errors/", "org/apache/spark/sql/catalyst/parser/", "py4j/")

  /** Where its checkpoint may lie, then Spark's settings as `name=value`. */
  def main(args: Array[String]): Unit = {
    val builder = SparkSession.builder
    args.tail.map(_.split("=", 2)).foreach { case Array(name, value) => builder.config(name, value) }
    val spark = builder.getOrCreate()
    val counted = spark.readStream.format("rate").option("rowsPerSecond", 10).load().groupBy("value").count()
    counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", args.head)
      .trigger(Trigger.AvailableNow).start().awaitTermination()
    spark.range(10).selectExpr("id", "cast(id as string) as text").write.parquet(s"${args.head}-rows")
    val kafka = Map[String, Object]("bootstrap.servers" -> "127.0.0.1:1", "transactional.id" -> "warm")
    new KafkaProducer(kafka.asJava, new ByteArraySerializer, new ByteArraySerializer).close()
    Admin.create(kafka.asJava).close()
    LogSpec.consumer(kafka.collect { case (k, v) if k == "bootstrap.servers" => k -> v.toString }).close()
    System.getProperty("java.class.path").split(File.pathSeparator).filter(_.endsWith(".jar")).foreach(load)
    spark.stop()
  }

  private def load(jar: String): Unit = Using.resource(new JarFile(jar)) { file =>
    for (entry <- file.entries.asScala.map(_.getName) if entry.endsWith(".class") && whole.exists(entry.startsWith))
      try Class.forName(entry.stripSuffix(".class").replace('/', '.'), false, getClass.getClassLoader)
      catch { case _: LinkageError | _: ClassNotFoundException => } // it needs what nobody has here
  }
}
