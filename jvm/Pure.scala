/** The pure steps, called from Python without Spark: many cases at once, so that thousands can be compared in seconds.
  *
  * A case is one key's schedule: {spec, types, results, topics, having, batches: [{rows, before, watermark, clock}]}.
  * `types`: of each aggregate's argument (null: none), `results`: of its value, in Spark's words. A row is
  * [time, src, part, off, id in hex, [arguments]]. `having`: {value, least} = "this value is at least that", or null. */
package headrace

import java.math.BigInteger
import java.nio.ByteBuffer
import java.util.{ArrayList, Base64, HashMap, HexFormat}

import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.node.{ArrayNode, JsonNodeFactory, ObjectNode}
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.headrace.Deciding
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import headrace.deciding.Trees
import headrace.steps._

object Pure {
  private[headrace] val json = JsonMapper.builder.enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS).build()
  private[headrace] val nodes = JsonNodeFactory.instance

  /** Runs every case; for each batch: verdicts by row, results, rows used up, rows held, the next due moment. */
  def run(cases: String): String = {
    val found = nodes.arrayNode
    json.readTree(cases).forEach(one => found.add(new Case(one).run()))
    json.writeValueAsString(found)
  }

  /** A wheel over batches [{now, add: [[due, slot], ...]}, ...], opened anew for each, as a task does: for each batch the
    * entries that came up, and how many values the wheel keeps. */
  def turned(batches: String): String = {
    val values = new HashMap[ByteBuffer, Array[Byte]]
    val store = new WheelStore {
      def get(name: Array[Byte]): Array[Byte] = values.get(ByteBuffer.wrap(name))
      def put(name: Array[Byte], bytes: Array[Byte]): Unit = values.put(ByteBuffer.wrap(name), bytes)
      def remove(name: Array[Byte]): Unit = values.remove(ByteBuffer.wrap(name))
    }
    val found = nodes.arrayNode
    json.readTree(batches).forEach { batch =>
      val told = found.addObject()
      val up = told.putArray("up")
      val wheel = new Wheel(store)
      wheel.open()
      val now = moment(batch.get("now"))
      batch.get("add").forEach(one => wheel.add(one.get(0).asLong, one.get(1).asLong, Array[Byte](7), now))
      val turn = wheel.takeDue(now)((due, slot, _) => up.addArray().add(due).add(slot))
      while (turn.next()) {}
      wheel.close()
      told.put("kept", values.size)
    }
    json.writeValueAsString(found)
  }

  /** Values as payloads of the chain, and back: [{types, rows: [[value, ...], ...]}, ...] to [[base64, ...], ...]. */
  def packed(groups: String): String = each(groups, "rows") { (types, row) =>
    val values = types.indices.map(i => value(row.get(i), types(i))).toArray[Any]
    nodes.textNode(Base64.getEncoder.encodeToString(UnsafeProjection.create(types)(new GenericInternalRow(values)).getBytes))
  }

  /** [{types, payloads: [base64, ...]}, ...] to [[[value, ...], ...], ...]. */
  def unpacked(groups: String): String = each(groups, "payloads") { (types, payload) =>
    val bytes = Base64.getDecoder.decode(payload.asText)
    val row = new UnsafeRow(types.length)
    row.pointTo(bytes, bytes.length)
    val values = nodes.arrayNode
    types.indices.foreach(i => values.add(show(if (row.isNullAt(i)) null else row.get(i, types(i)), types(i))))
    values
  }

  /** The score and the raw sum of a model for rows of doubles, as bytes one after the other. */
  def scored(model: String, features: Int, rows: Array[Byte]): Array[Byte] = {
    val trees = Trees.parse(json.readTree(model))
    val in = ByteBuffer.wrap(rows)
    val out = ByteBuffer.allocate(rows.length / features * 2)
    while (in.hasRemaining) {
      val values = Array.fill(features)(in.getDouble)
      out.putDouble(trees.score(values)).putDouble(trees.raw(values))
    }
    out.array
  }

  /** What the policy that stands at a place says of rows: [{types, rows}] of payloads as `packed` reads and `unpacked`
    * writes them, `said` being behind the columns of `row` in what comes out. Both are DDL. */
  def decided(rows: String, place: String, default: String, row: String, said: String): String = {
    val deciding = new Deciding(place, default, StructType.fromDDL(row), StructType.fromDDL(said))
    val types = (StructType.fromDDL(row) ++ StructType.fromDDL(said)).map(_.dataType.sql)
    val found = nodes.arrayNode
    val group = found.addObject()
    types.foreach(group.withArrayProperty("types").add(_))
    val told = group.putArray("payloads")
    json.readTree(packed(rows)).get(0).forEach { payload =>
      told.add(Base64.getEncoder.encodeToString(deciding.decide(Base64.getDecoder.decode(payload.asText))))
    }
    unpacked(json.writeValueAsString(found))
  }

  private def each(groups: String, name: String)(make: (Array[DataType], JsonNode) => JsonNode): String = {
    val found = nodes.arrayNode
    json.readTree(groups).forEach { group =>
      val types = Array.tabulate(group.get("types").size)(i => typeOf(group.get("types").get(i)))
      val made = found.addArray()
      group.get(name).forEach(one => made.add(make(types, one)))
    }
    json.writeValueAsString(found)
  }

  private final class Case(node: JsonNode) {
    private val types = node.get("types")
    private val argued = (0 until types.size).filterNot(i => types.get(i).isNull)
    private val argTypes = argued.map(i => typeOf(types.get(i))).toArray
    private val resultTypes = Array.tabulate(node.get("results").size)(i => typeOf(node.get("results").get(i)))
    private val step = Step.of(
      node.get("spec"),
      Array.tabulate(types.size)(argued.indexOf(_)),
      argTypes.map(Kind.of),
      resultTypes.map(Kind.of),
      Array.tabulate(node.get("topics").size)(node.get("topics").get(_).asText)
    )
    private val passes: Passes = if (node.get("having").isNull) null else least(node.get("having"))
    private val out = new BlobWriter
    private var state = step.fresh()

    def run(): ArrayNode = {
      val found = nodes.arrayNode
      node.get("batches").forEach(batch => found.add(run(batch)))
      found
    }

    private def run(batch: JsonNode): ObjectNode = {
      val rows = new ArrayList[(Int, Row)]
      batch.get("rows").forEach(row => rows.add((rows.size, rowOf(row))))
      if (step.ordered) rows.sort((one, other) => one._2.compare(other._2))
      val before = moment(batch.get("before"))
      val watermark = moment(batch.get("watermark"))
      val verdicts = new Array[String](rows.size)
      val late = new ArrayList[(Int, Row)]
      rows.forEach { case (number, row) =>
        val verdict = step.step(state, row, before)
        verdicts(number) = Verdict.names(verdict)
        if (verdict == Verdict.LATE) late.add(0, (number, row))
      }
      late.forEach { case (number, row) => verdicts(number) = Verdict.names(step.step(state, row, before)) }
      val results = new ArrayList[Result]
      var used = 0L
      if (!rows.isEmpty || (watermark != Times.NONE && step.due(state) <= watermark))
        used = step.onTime(state, watermark, batch.get("clock").asLong, passes, results)
      // Kept and read again after every batch, as the kernel does.
      state = if (state.empty) step.fresh() else Step.fromBytes(step, Step.toBytes(step, state, out))
      val answer = nodes.objectNode
      val (judged, sent) = (answer.putArray("verdicts"), answer.putArray("results"))
      verdicts.foreach(judged.add(_))
      results.forEach(result => sent.add(told(result)))
      answer.put("used", used).put("held", state.held)
      if (step.due(state) != Times.NEVER) answer.put("due", step.due(state))
      answer
    }

    private def rowOf(node: JsonNode): Row = {
      val row = new Row
      row.time = node.get(0).asLong
      row.src = node.get(1).asInt
      row.part = node.get(2).asInt
      row.off = node.get(3).asLong
      row.id = HexFormat.of().parseHex(node.get(4).asText)
      row.args = new GenericInternalRow(argued.indices.map(i => value(node.get(5).get(argued(i)), argTypes(i))).toArray[Any])
      row
    }

    private def told(result: Result): ArrayNode = {
      val told = nodes.arrayNode
      if (result.start == Times.NONE) told.addNull().addNull() else told.add(result.start).add(result.end)
      told.add(result.kind).add(result.revision)
      val values = told.addArray()
      resultTypes.indices.foreach(i => values.add(show(result.values(i), resultTypes(i))))
      told.add(result.time).add(result.cause)
    }

    private def least(having: JsonNode): Passes = {
      val at = having.get("value").asInt
      val bound = value(having.get("least"), resultTypes(at))
      val kind = Kind.of(resultTypes(at))
      result => result.values(at) != null && kind.compare(result.values(at), bound) >= 0
    }
  }

  private[headrace] def typeOf(node: JsonNode): DataType = CatalystSqlParser.parseDataType(node.asText)

  private[headrace] def moment(node: JsonNode): Long = if (node.isNull) Times.NONE else node.asLong

  private[headrace] def value(node: JsonNode, as: DataType): Any = if (node.isNull) null else as match {
    case LongType | TimestampType => node.asLong
    case DoubleType => node.asDouble
    case decimal: DecimalType => units(node.bigIntegerValue, decimal)
    case StringType => UTF8String.fromString(node.asText)
    case BooleanType => node.asBoolean
    case BinaryType => HexFormat.of().parseHex(node.asText)
    case list: ArrayType => new GenericArrayData(Array.tabulate[Any](node.size)(i => value(node.get(i), list.elementType)))
  }

  private def units(unscaled: BigInteger, as: DecimalType): Decimal =
    Decimal(new java.math.BigDecimal(unscaled, as.scale), as.precision, as.scale)

  private[headrace] def show(value: Any, as: DataType): JsonNode = (value, as) match {
    case (null, _) => nodes.nullNode
    case (whole: Long, _) => nodes.numberNode(whole)
    case (real: Double, _) => nodes.numberNode(real)
    case (decimal: Decimal, _) => nodes.numberNode(decimal.toJavaBigDecimal.unscaledValue)
    case (truth: Boolean, _) => nodes.booleanNode(truth)
    case (bytes: Array[Byte], _) => nodes.textNode(HexFormat.of().formatHex(bytes))
    case (list: ArrayData, ArrayType(item, _)) =>
      val told = nodes.arrayNode
      (0 until list.numElements()).foreach(i => told.add(show(if (list.isNullAt(i)) null else list.get(i, item), item)))
      told
    case (text, _) => nodes.textNode(text.toString)
  }
}
