/** The topic of commits: which batch a flow wrote last, told by a token in the very transaction that wrote it. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.kafka.clients.producer.ProducerRecord
import org.apache.kafka.common.TopicPartition

/** The batch, the run of a query that wrote it, and a mark of its plan: copies of a checkpoint count on alike, and what
  * they call the same batch holds other rows. "" in a flow's own token, and in those of earlier versions. */
case class Token(batch: Long, run: String, plan: String = "")

class Commits(topic: String, kafka: Map[String, String]) {
  import Commits._

  /** The last token under each key. It waits until everything in the topic is decided: a transaction of another flow,
    * still open, may stand before a token of ours, and readers of committed records stop there. */
  def read(): Map[String, Token] = {
    val place = new TopicPartition(topic, 0)
    val end = Using.resource(LogSpec.consumer(kafka, "isolation.level" -> "read_uncommitted"))(_.endOffsets(List(place).asJava).get(place))
    Using.resource(LogSpec.consumer(kafka)) { log =>
      log.assign(List(place).asJava)
      log.seekToBeginning(List(place).asJava)
      var found = Map.empty[String, Token]
      val till = System.nanoTime + Patience.toNanos
      while (log.position(place) < end) {
        if (System.nanoTime > till) throw new LogTrouble("log",
          s"topic '$topic' is undecided from offset ${log.position(place)} on: a transaction of another flow stays open")
        log.poll(Duration.ofMillis(100)).forEach(r => found += new String(r.key, UTF_8) -> parse(r.value))
      }
      found
    }
  }

  def record(key: String, token: Token): ProducerRecord[Array[Byte], Array[Byte]] = {
    val value = mapper.createObjectNode.put("batch", token.batch).put("run", token.run).put("plan", token.plan)
    new ProducerRecord(topic, key.getBytes(UTF_8), mapper.writeValueAsBytes(value))
  }
}

object Commits {
  private val Patience = Duration.ofSeconds(60)
  private val mapper = new ObjectMapper

  private def parse(value: Array[Byte]): Token = {
    val o = mapper.readTree(value)
    Token(o.get("batch").asLong, o.get("run").asText, o.path("plan").asText)
  }
}
