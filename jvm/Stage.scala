/** A stage: one transformWithState that runs all stateful steps of one level; rows of other steps pass by untouched. */
package headrace

import java.util.{List => JavaList, Map => JavaMap}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
import org.apache.spark.sql.headrace.StagePlan
import org.apache.spark.sql.types.StructType

import headrace.steps.RowStep

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

  /** What is left of a slot without its step: all that a key's place among the partitions goes by. */
  final val PLACE = -1L << STEP_BITS

  def stepOf(slot: Long): Int = (slot & ((1L << STEP_BITS) - 1)).toInt

  /** The slot under which the wheel keeps its lists: the last step that fits, and no key's hash. */
  final val WHEEL = (1L << STEP_BITS) - 1

  /** Ports of what comes out. */
  final val ROWS = 0
  final val LATE_ROWS = 1
  final val DUPLICATES = 2
  final val UNMATCHED = 3
  final val TIMEOUTS = 4
  final val REFUSED = 5 // by a pattern at its limit: goes to dead letters

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

  /** The chain behind the steps of this spec; `conditions`: of each step, by its ordinal (StepSpec). */
  def apply(chain: DataFrame, spec: String, conditions: JavaMap[Integer, JavaList[Column]]): DataFrame =
    StagePlan(chain, StageSpec.parse(spec), conditions)
}

/** What a stage is told: who it works for, and its steps. `inPlace`: its rows lie where their keys belong already. */
case class StageSpec(
    app: String, version: String, topics: Array[String], byClock: Boolean, inPlace: Boolean, steps: Array[StepSpec])

/** A window, dedup or changed has one input and tells its `output`; a row step (RowStep) has `ports` instead. `having` is a
  * window's only condition, over its output; those of a row step see its first input, then columns of their own. */
case class StepSpec(
    ordinal: Int,
    name: String,
    hold: Long, // ms
    spec: String, // of the pure step, as JSON
    inputs: Array[Array[Field]], // the payload of each
    output: Array[Field],
    keys: Int, // the first columns of a window's payload that are the key's
    ports: Map[Int, Array[Field]], // the payload of each
    emits: Set[Int], // the ports that somebody reads
    asked: Array[Array[Field]], // the own columns of each condition of a row step
    conditions: Array[Expression] // bound
) {
  def input: Array[Field] = inputs(0)
  def givesRows: Boolean = ports.nonEmpty
  def chunked: Boolean = RowStep.chunked(StageSpec.json.readTree(spec))

  /** What a condition is over. */
  def schemaOf(condition: Int): StructType = Field.schema(if (givesRows) input ++ asked(condition) else output)
}

object StageSpec {
  private[headrace] val json = new ObjectMapper

  def parse(text: String): StageSpec = {
    val node = json.readTree(text)
    StageSpec(
      node.get("app").asText,
      node.get("version").asText,
      listed(node.get("topics")).map(_.asText),
      node.path("by_clock").asBoolean,
      node.path("in_place").asBoolean,
      listed(node.get("steps")).map(step)
    )
  }

  private def step(node: JsonNode): StepSpec = StepSpec(
    node.get("ordinal").asInt,
    node.get("name").asText,
    node.get("hold_ms").asLong,
    node.get("spec").toString,
    listed(node.get("inputs")).map(Field.parse),
    if (node.has("output")) Field.parse(node.get("output")) else Array.empty,
    node.path("keys").asInt,
    node.path("ports").properties.asScala.map(port => port.getKey.toInt -> Field.parse(port.getValue)).toMap,
    listed(node.get("emits")).map(_.asInt).toSet,
    listed(node.path("asked")).map(Field.parse),
    Array.empty
  )

  private def listed(node: JsonNode): Array[JsonNode] = node.elements.asScala.toArray
}
