/** A stage: one transformWithState that runs all stateful steps of one level; rows of other steps pass by untouched. */
package headrace

import java.util.{Map => JavaMap}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
import org.apache.spark.sql.headrace.StagePlan
import org.apache.spark.sql.types.StructType

object Stage {

  /** The chain's columns, in this order; what comes out has the same. */
  final val STEP = 0
  final val PORT = 1
  final val KEY = 2
  final val TIME = 3
  final val BEFORE = 4
  final val SRC = 5
  final val PART = 6
  final val OFF = 7
  final val ID = 8
  final val PAYLOAD = 9

  /** A step's ordinal fits into so many bits, those of exits and dead letters too. */
  final val STEP_BITS = 21

  def stepOf(slot: Long): Int = (slot & ((1L << STEP_BITS) - 1)).toInt

  /** The slot under which the wheel keeps its lists: the last step that fits, and no key's hash. */
  final val WHEEL = (1L << STEP_BITS) - 1

  /** Ports of what comes out. */
  final val ROWS = 0
  final val LATE_ROWS = 1
  final val DUPLICATES = 2

  /** The port of rows that were put together on their way in: see Combine. */
  final val TOGETHER = 9

  /** Makes `payload` a view of this row's payload, which stays where it lies. */
  def pointPayload(chain: UnsafeRow, payload: UnsafeRow): Unit = {
    val place = chain.getLong(PAYLOAD) // offset and size of a binary column, as UnsafeRow keeps them
    payload.pointTo(chain.getBaseObject, chain.getBaseOffset + (place >>> 32), place.toInt)
  }

  /** The step of dead letters: the chain takes them to their topic. */
  final val DEAD_LETTERS = 2000000

  /** Derived rows come from source DERIVED + ordinal in rule R2. */
  final val DERIVED = 1000

  /** The chain behind the steps of this spec; `having`: conditions over a step's output columns, by its ordinal. */
  def apply(chain: DataFrame, spec: String, having: JavaMap[Integer, Column]): DataFrame =
    StagePlan(chain, StageSpec.parse(spec), having)
}

/** What a stage is told: who it works for, and its steps. `having` is bound to the output columns, or null. */
case class StageSpec(app: String, version: String, topics: Array[String], byClock: Boolean, steps: Array[StepSpec])

case class StepSpec(
    ordinal: Int,
    name: String,
    hold: Long, // ms
    spec: String, // of the pure step, as JSON
    input: Array[Field],
    output: Array[Field],
    keys: Int, // the first columns of the payload that are the key's
    emitsLate: Boolean,
    emitsDuplicates: Boolean,
    having: Expression
) {
  def outputSchema: StructType = Field.schema(output)
}

object StageSpec {
  def parse(json: String): StageSpec = {
    val node = new ObjectMapper().readTree(json)
    val topics = node.get("topics")
    StageSpec(
      node.get("app").asText,
      node.get("version").asText,
      Array.tabulate(topics.size)(topics.get(_).asText),
      node.path("by_clock").asBoolean,
      Array.tabulate(node.get("steps").size)(i => step(node.get("steps").get(i)))
    )
  }

  private def step(node: JsonNode): StepSpec = StepSpec(
    node.get("ordinal").asInt,
    node.get("name").asText,
    node.get("hold_ms").asLong,
    node.get("spec").toString,
    Field.parse(node.get("input")),
    Field.parse(node.get("output")),
    node.get("keys").asInt,
    node.get("emits_late").asBoolean,
    node.get("emits_duplicates").asBoolean,
    null
  )
}
