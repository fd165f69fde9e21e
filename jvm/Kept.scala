/** The source's own small files in the checkpoint: where it started, and what the last batch taught. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.immutable.SortedMap
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** What holds after the batch whose offset was planned at `at` and which ended at `ended` (wall clock, ms): the next
  * watermark, and each partition's greatest time. The tasks told it, and a new process could not ask them again. */
case class Settled(at: Long, ended: Long, watermark: Long, tops: Map[Place, Long])

class Kept(folder: String, conf: Configuration, names: Seq[String]) {
  private val mapper = new ObjectMapper
  private val files = new CheckedFiles(new Path(folder), conf)
  files.mkdirs(new Path(folder))

  /** Nothing else remembers where an unfinished first batch began: real-time mode logs offsets at the end of a batch. */
  def start: Option[LogOffset] = read("start.json").map(LogOffset.parse(_, names))
  def start_=(offset: LogOffset): Unit = write("start.json", offset.json)

  def settled: Option[Settled] = read("settled.json").map { json =>
    val o = mapper.readTree(json)
    val tops = names.zipWithIndex.flatMap { case (name, topic) =>
      o.get("tops").path(name).properties.asScala.map(e => Place(topic, e.getKey.toInt) -> e.getValue.asLong)
    }
    Settled(o.get("at").asLong, o.get("ended").asLong, o.path("watermark").asLong(Part.None), tops.toMap)
  }

  /** Written before Spark commits the batch, so that a committed batch always has its own. */
  def settled_=(s: Settled): Unit = {
    val o = mapper.createObjectNode().put("at", s.at).put("ended", s.ended)
    if (s.watermark != Part.None) o.put("watermark", s.watermark)
    val tops = o.putObject("tops")
    SortedMap.from(s.tops).foreach { case (place, top) =>
      if (top != Part.None) tops.withObject(s"/${names(place.topic).replace("~", "~0").replace("/", "~1")}").put(place.partition.toString, top)
    }
    write("settled.json", mapper.writeValueAsString(o))
  }

  private def read(name: String): Option[String] = {
    val path = new Path(folder, name)
    if (!files.exists(path)) None
    else { val in = files.open(path); try Some(new String(in.readAllBytes, UTF_8)) finally in.close() }
  }

  private def write(name: String, text: String): Unit = {
    val out = files.createAtomic(new Path(folder, name), overwriteIfPossible = true)
    try { out.write(text.getBytes(UTF_8)); out.close() } catch { case e: Throwable => out.cancel(); throw e }
  }
}
