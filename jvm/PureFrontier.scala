/** The watermark, called from Python without a broker: many cases at once, as Pure does for steps.
  *
  * A case is {spec, turns: [{now, parts: [[topic, partition, top or null, seen], ...]}]}; the spec is LogSpec's. */
package headrace

import java.util

import org.apache.spark.sql.util.CaseInsensitiveStringMap

object PureFrontier {
  import Pure.{json, nodes}

  /** For each turn of each case the watermark after it, in ms; null before the first. */
  def run(cases: String): String = {
    val found = nodes.arrayNode
    json.readTree(cases).forEach { one =>
      val options = util.Map.of("spec", one.get("spec").toString, "kafka.bootstrap.servers", "none")
      val spec = LogSpec.parse(new CaseInsensitiveStringMap(options))
      val told = found.addArray()
      var watermark = Frontier.None
      one.get("turns").forEach { turn =>
        val parts = Seq.newBuilder[Reached]
        turn.get("parts").forEach(p => parts += Reached(Place(p.get(0).asInt, p.get(1).asInt), p.get(2).asLong(Frontier.None),
          p.get(3).asLong, caughtUp = true, finished = false))
        watermark = Frontier.watermark(spec, parts.result(), watermark, turn.get("now").asLong, bounded = false, _.toSet)
        if (watermark == Frontier.None) told.addNull() else told.add(watermark)
      }
    }
    json.writeValueAsString(found)
  }
}
