/** The pure row steps, called from Python without Spark: many cases at once, as Pure does for steps that give results.
  *
  * A case is one key's schedule: {spec, inputs: [[type, ...], ...], ports: {number: [type, ...]}, topics, keyed,
  * batches: [{rows, before, watermark, clock}]}, types in Spark's words. A row is [input, time, src, part, off, id in
  * hex, [columns] or null for a tombstone]. `keyed` false: the rows are without key. A case may have `conditions`
  * [[place, "<" | "=", place, type], ...] over the columns that the step says. */
package headrace

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{ArrayList, HashMap, HexFormat}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.spark.sql.catalyst.expressions.{BoundReference, EqualTo, Expression, GenericInternalRow, InterpretedUnsafeProjection, LessThan, UnsafeProjection}
import org.apache.spark.sql.types.DataType

import headrace.Pure.{json, moment, nodes, show, typeOf, value}
import headrace.steps._

object PureRows {

  /** Runs every case; for each batch: verdicts by row, what was given ([port, time, offset, cause, [values]], and the
    * key text if it is another one), rows used up, rows held, the next due moment. */
  def run(cases: String): String = {
    val found = nodes.arrayNode
    json.readTree(cases).forEach(one => found.add(new Case(one).run()))
    json.writeValueAsString(found)
  }

  /** How many bytes a case keeps of its key in the end. */
  def bytes(only: String): Int = {
    val one = new Case(json.readTree(only))
    one.run()
    one.kept
  }

  private final class Case(node: JsonNode) {
    private val inputs = node.get("inputs").elements.asScala.map(types).toArray
    private val ports = node.get("ports").properties.asScala.map(port => port.getKey.toInt -> types(port.getValue)).toMap
    private val topics = node.get("topics").elements.asScala.map(_.asText).toArray
    private val packing = inputs.map(packed)
    private val conditions = node.path("conditions").elements.asScala.map(condition).toArray
    private val step = RowStep.of(new RowStepSpec(node.get("spec"), inputs, ports, conditions, topics))
    private val pieces = new Pieces
    step.chunks = pieces
    private val keyed = node.get("keyed").asBoolean
    private val out = new BlobWriter
    private var state = step.fresh()

    def run(): ArrayNode = {
      val found = nodes.arrayNode
      node.get("batches").forEach(batch => found.add(run(batch)))
      found
    }

    def kept: Int = RowStep.toBytes(step, state, out).length

    private def run(batch: JsonNode): ObjectNode = {
      val answer = nodes.objectNode
      val (judged, told) = (answer.putArray("verdicts"), answer.putArray("given"))
      val rows = batch.get("rows").elements.asScala.map(row => new Entering(row.get(0).asInt, rowOf(row))).toArray
      val verdicts = new HashMap[Entering, String]
      val (before, watermark) = (moment(batch.get("before")), moment(batch.get("watermark")))
      rows.sortWith(inTurn).foreach { entering =>
        val made = new ArrayList[Given]
        val verdict =
          if (keyed) step.step(state, entering.row, entering.input, before, made)
          else step.unkeyed(entering.row, entering.input, before, made)
        verdicts.put(entering, Verdict.names(verdict))
        made.forEach(one => told.add(shown(one)))
      }
      rows.foreach(row => judged.add(verdicts.get(row)))
      var used = 0L
      if (keyed && (rows.nonEmpty || (watermark != Times.NONE && step.due(state) <= watermark))) {
        val made = new ArrayList[Given]
        used = step.onTime(state, watermark, batch.get("clock").asLong, made)
        made.forEach(one => told.add(shown(one)))
      }
      if (state.empty && !pieces.isEmpty) throw new IllegalStateException("a key that is gone has left pieces behind")
      // Kept and read again after every batch, as the kernel does.
      state = if (state.empty) step.fresh() else RowStep.fromBytes(step, RowStep.toBytes(step, state, out))
      answer.put("used", used).put("held", state.held)
      if (step.due(state) != Times.NEVER) answer.put("due", step.due(state))
      answer
    }

    private def inTurn(one: Entering, other: Entering): Boolean = {
      val turns = if (one.row.time == other.row.time) step.turn(one.input) - step.turn(other.input) else 0
      turns < 0 || (turns == 0 && one.isBefore(other))
    }

    private def rowOf(node: JsonNode): Row = {
      val (input, columns) = (node.get(0).asInt, node.get(6))
      val row = new Row
      row.time = node.get(1).asLong
      row.src = node.get(2).asInt
      row.part = node.get(3).asInt
      row.off = node.get(4).asLong
      row.id = HexFormat.of().parseHex(node.get(5).asText)
      if (!columns.isNull) {
        val values = inputs(input).indices.map(i => value(columns.get(i), inputs(input)(i))).toArray[Any]
        row.args = packing(input)(new GenericInternalRow(values)).copy()
      }
      row
    }

    private def shown(one: Given): ArrayNode = {
      val told = nodes.arrayNode.add(one.port).add(one.time)
      if (one.origin == null) told.add(0).add(one.causeText)
      else told.add(one.origin.off).add(Cause.of(one.origin, topics))
      if (one.values == null) told.addNull()
      else {
        val (row, types) = (one.values, ports(one.port))
        val values = told.addArray()
        types.indices.foreach(i => values.add(show(if (row.isNullAt(i)) null else row.get(i, types(i)), types(i))))
      }
      if (one.key == null) told else told.add(new String(one.key, UTF_8))
    }

    private def condition(node: JsonNode): Expression = {
      val as = typeOf(node.get(3))
      val (left, right) = (BoundReference(node.get(0).asInt, as, nullable = true), BoundReference(node.get(2).asInt, as, nullable = true))
      if (node.get(1).asText == "<") LessThan(left, right) else EqualTo(left, right)
    }

    private def types(list: JsonNode): Array[DataType] = list.elements.asScala.map(typeOf).toArray

    private def packed(types: Array[DataType]): UnsafeProjection =
      InterpretedUnsafeProjection.createProjection(types.indices.map(i => BoundReference(i, types(i), nullable = true)))
  }

  private final class Entering(val input: Int, val row: Row) {
    def isBefore(other: Entering): Boolean = {
      val order = row.compare(other.row)
      order < 0 || (order == 0 && input < other.input)
    }
  }

  private final class Pieces extends Chunks {
    private val values = new HashMap[ByteBuffer, Array[Byte]]

    def isEmpty: Boolean = values.isEmpty
    def get(name: Array[Byte]): Array[Byte] = values.get(ByteBuffer.wrap(name))
    def put(name: Array[Byte], bytes: Array[Byte]): Unit = values.put(ByteBuffer.wrap(name), bytes)
    def remove(name: Array[Byte]): Unit = values.remove(ByteBuffer.wrap(name))
  }
}
