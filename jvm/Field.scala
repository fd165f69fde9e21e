/** A column of an event and its type, the same on the wire, in Python and in Spark. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.types._

/** The kinds of `headrace.expr.types`; money is a decimal(18, 2). */
sealed trait Kind { def spark: DataType; def name: String }
case object BoolKind extends Kind { val spark: DataType = BooleanType; val name = "bool" }
case object IntKind extends Kind { val spark: DataType = LongType; val name = "int" }
case object FloatKind extends Kind { val spark: DataType = DoubleType; val name = "float" }
case object TextKind extends Kind { val spark: DataType = StringType; val name = "text" }
case object TimeKind extends Kind { val spark: DataType = TimestampType; val name = "time" }
case object BytesKind extends Kind { val spark: DataType = BinaryType; val name = "bytes" }
case class DecimalKind(precision: Int, scale: Int) extends Kind {
  val spark: DataType = DecimalType(precision, scale)
  val name: String = if (precision == 18 && scale == 2) "money" else s"decimal($precision, $scale)"
}
case class ListKind(item: Kind) extends Kind {
  val spark: DataType = ArrayType(item.spark, containsNull = false)
  val name = s"list of ${item.name}"
}

object Kind {
  private val simple = Seq(BoolKind, IntKind, FloatKind, TextKind, TimeKind, BytesKind).map(k => k.name -> k).toMap
  private val decimal = """decimal\((\d+), ?(\d+)\)""".r

  def parse(name: String): Kind = name match {
    case "money" => DecimalKind(18, 2)
    case decimal(precision, scale) => DecimalKind(precision.toInt, scale.toInt)
    case list if list.startsWith("list of ") => ListKind(parse(list.drop("list of ".length)))
    case other => simple.getOrElse(other, throw new IllegalArgumentException(s"there is no type '$other'"))
  }
}

case class Field(name: String, kind: Kind, nullable: Boolean) {
  /** As the name stands in JSON; compared byte by byte. */
  val utf8: Array[Byte] = name.getBytes(UTF_8)
}

object Field {
  /** From `[{"name": "amount", "type": "money", "nullable": false}, ...]`. */
  def parse(list: JsonNode): Array[Field] = list.elements.asScala.map { f =>
    Field(f.get("name").asText, Kind.parse(f.get("type").asText), f.path("nullable").asBoolean(false))
  }.toArray

  /** Every column is nullable to Spark: a dead record has none of them. */
  def schema(fields: Array[Field]): StructType =
    StructType(fields.map(f => StructField(f.name, f.kind.spark, nullable = true)))
}
