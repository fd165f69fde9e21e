/** A place in the log, with all that a batch depends on, so that a replayed batch is the same batch.
  *
  * {{{
  * {"at": 1700000000000,            wall clock of planning, ms; judges "future" and idleness; also the offset's identity
  *  "watermark": 1699999970000,     W in the batch that ends here, ms; absent: none yet
  *  "aligned": 1699999990000,       aligned replay: record time up to which every partition was read, ms
  *  "ids": {"payments": "kQ..."},   the topics' own ids: a recreated topic has another
  *  "parts": {"payments": {"0": {
  *     "from": 10, "to": 20,        the batch that ends here read [from, to)
  *     "top": 1700000000000000,     greatest event time (or mark) below `from`, micros; absent: none
  *     "seen": 1700000000000,       wall clock when something was last unread here, ms
  *     "open": true,                absent when nothing was unread after `to`
  *     "load": 500}}}}              a table's end at the query's first start, absent once `to` is there (rule J4)
  * }}}
  * Rule R3: batch k read the rows [from, to) under the `watermark` of offset k - 1, then time went to its own. */
package headrace

import scala.collection.immutable.SortedMap
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.connector.read.streaming.Offset

/** A partition of one of the query's topics, by the topic's index in the spec. */
case class Place(topic: Int, partition: Int)

object Place {
  implicit val order: Ordering[Place] = Ordering.by(p => (p.topic, p.partition))
}

case class Part(from: Long, to: Long, top: Long, seen: Long, open: Boolean = false, load: Long = 0) {
  /** A table that is not read to `load` yet: streams wait, and time stands still. */
  def loading: Boolean = to < load
}

object Part {
  /** "No time known": below every real one, so that max needs no special case. */
  val None: Long = Long.MinValue
}

case class LogOffset(names: Seq[String], ids: Map[String, String], parts: SortedMap[Place, Part], watermark: Long,
                     aligned: Long, at: Long) extends Offset {
  override lazy val json: String = {
    val o = LogOffset.mapper.createObjectNode().put("at", at)
    put(o, "watermark", watermark)
    put(o, "aligned", aligned)
    val known = o.putObject("ids")
    ids.toSeq.sorted.foreach { case (topic, id) => known.put(topic, id) }
    val all = o.putObject("parts")
    names.zipWithIndex.foreach { case (name, topic) =>
      val ofTopic = all.putObject(name)
      parts.foreach { case (place, p) =>
        if (place.topic == topic) {
          val n = ofTopic.putObject(place.partition.toString).put("from", p.from).put("to", p.to).put("seen", p.seen)
          put(n, "top", p.top)
          if (p.open) n.put("open", true)
          if (p.loading) n.put("load", p.load)
        }
      }
    }
    LogOffset.mapper.writeValueAsString(o)
  }

  private def put(o: ObjectNode, name: String, value: Long): Unit = if (value != Part.None) o.put(name, value)
}

object LogOffset {
  private val mapper = new ObjectMapper

  def parse(json: String, names: Seq[String]): LogOffset = {
    val o = mapper.readTree(json)
    val parts = for {
      (name, topic) <- names.zipWithIndex
      entry <- o.get("parts").path(name).properties.asScala
      p = entry.getValue
    } yield Place(topic, entry.getKey.toInt) ->
      Part(p.get("from").asLong, p.get("to").asLong, p.path("top").asLong(Part.None), p.get("seen").asLong, p.path("open").asBoolean(false), p.path("load").asLong(0))
    LogOffset(names, o.get("ids").properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap, SortedMap.from(parts),
      o.path("watermark").asLong(Part.None), o.path("aligned").asLong(Part.None), o.get("at").asLong)
  }
}
