/** Producers on the executors: one per configuration, shared by the tasks that write with it. */
package headrace

import java.time.Duration
import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.producer.KafkaProducer
import org.apache.kafka.common.serialization.ByteArraySerializer

class SharedProducer(config: Map[String, String]) {
  val kafka = new KafkaProducer[Array[Byte], Array[Byte]](
    config.map { case (k, v) => k -> (v: Object) }.asJava, new ByteArraySerializer, new ByteArraySerializer)
  var users = 0
  var broken = false
  var usedAt: Long = System.nanoTime
}

object Producers {
  private val KeepNanos = TimeUnit.MINUTES.toNanos(1)
  private val shared = mutable.Map.empty[Map[String, String], SharedProducer]

  def take(config: Map[String, String]): SharedProducer = synchronized {
    val producer = shared.getOrElseUpdate(config, new SharedProducer(config))
    producer.users += 1
    producer
  }

  /** One that failed is not used again: an idempotent producer cannot always go on after an error. */
  def give(config: Map[String, String], producer: SharedProducer, broken: Boolean): Unit = {
    val ended = synchronized {
      producer.users -= 1
      producer.usedAt = System.nanoTime
      producer.broken ||= broken
      if (producer.broken && shared.get(config).contains(producer)) shared.remove(config)
      producer.broken && producer.users == 0
    }
    if (ended) close(producer)
  }

  private def close(producer: SharedProducer): Unit = {
    val interrupted = Thread.interrupted() // a stopped query interrupts its tasks, and close fails in such a thread
    try producer.kafka.close(Duration.ofSeconds(5)) finally if (interrupted) Thread.currentThread.interrupt()
  }

  private val sweeper = new Thread(() => while (true) {
    Thread.sleep(10000)
    val unused = synchronized {
      val found = shared.filter { case (_, p) => p.users == 0 && System.nanoTime - p.usedAt > KeepNanos }
      shared --= found.keys
      found.values.toList
    }
    unused.foreach(close)
  }, "headrace-producer-sweeper")
  sweeper.setDaemon(true)
  sweeper.start()
}
