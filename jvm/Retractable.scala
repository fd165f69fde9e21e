/** Aggregates that can give every value back, for groups over a table whose rows change and go (rules J5, D5).
  *
  * Counts and exact sums subtract. Sums of floats are kept exactly, as a whole number of a power of two, because what
  * rounding loses would stay when its cause is long retracted. min, max, top, distinct and quantile are read off the
  * multiset of the group's values: exact, at the price of an entry for each different value. */
package headrace.steps

import java.math.BigInteger

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{ArrayType, DataType, DecimalType, DoubleType, LongType}

abstract class Retractable[S <: AnyRef](at: Int) extends Algebra[S](at) {
  override def removable: Boolean = true

  def merge(into: S, other: S): Unit = throw new UnsupportedOperationException("a group over a table is never merged")
}

/** How many, and their total without loss: units * 2^exponent, units odd or 0; values given back leave no trace. */
final class ExactFloat(var n: Long, var units: BigInteger, var exponent: Int) {

  def plus(value: Double, rows: Int): Unit = {
    n += rows
    val bits = java.lang.Double.doubleToLongBits(value)
    val fraction = bits & ((1L << 52) - 1)
    val power = ((bits >>> 52) & 0x7ff).toInt
    val (mantissa, own) = if (power == 0) (fraction, -1074) else (fraction | (1L << 52), power - 1075)
    val more = BigInteger.valueOf(if (bits < 0) -mantissa else mantissa)
    if (own < exponent) {
      units = units.shiftLeft(exponent - own)
      exponent = own
    }
    units = units.add(more.shiftLeft(own - exponent))
    shorten()
  }

  /** The shortest form: the state depends only on the values it holds. */
  private def shorten(): Unit =
    if (units.signum == 0) exponent = 0
    else {
      val zeros = units.getLowestSetBit
      units = units.shiftRight(zeros)
      exponent += zeros
    }

  /** The float nearest to the total; null if there is none. */
  def value: Any = if (n == 0) null else {
    // More bits than a float has, the last one standing for all that are left out: it rounds as the whole would.
    val excess = Math.max(0, units.bitLength - 64)
    val top = if (excess == 0) units else units.abs.shiftRight(excess).setBit(0)
    val nearest = Math.scalb(top.doubleValue, exponent + excess)
    if (java.lang.Double.isInfinite(nearest)) null else if (excess > 0 && units.signum < 0) -nearest else nearest
  }
}

class ExactFloatSum(at: Int) extends Retractable[ExactFloat](at) {
  def empty(): ExactFloat = new ExactFloat(0, BigInteger.ZERO, 0)

  def add(state: ExactFloat, row: Row): Unit = if (!row.args.isNullAt(at)) state.plus(row.args.getDouble(at), 1)

  override def remove(state: ExactFloat, args: InternalRow): Unit = if (!args.isNullAt(at)) state.plus(-args.getDouble(at), -1)

  def value(state: ExactFloat): Any = state.value

  def write(state: ExactFloat, out: BlobWriter): Unit = {
    out.long(state.n)
    out.binary(state.units.toByteArray)
    out.long(state.exponent)
  }

  def read(in: BlobReader): ExactFloat = new ExactFloat(in.long(), new BigInteger(in.binary()), in.int())
}

final class ExactFloatAvg(at: Int) extends ExactFloatSum(at) {
  override def value(state: ExactFloat): Any = state.value match {
    case total: Double => total / state.n.toDouble
    case _ => null
  }
}

object Retractable {

  /** The algebra of one aggregate over a changing table; plan checks refuse the kinds that there is none of. */
  def of(spec: JsonNode, at: Int, kind: Kind): Algebra[_ <: AnyRef] = spec.get("kind").asText match {
    case "sum" if kind eq Kind.Real => new ExactFloatSum(at)
    case "avg" if kind eq Kind.Real => new ExactFloatAvg(at)
    case "count" | "sum" | "avg" => Algebra.of(spec, at, kind)
    case "min" => new Multiset.Least(at, kind)
    case "max" => new Multiset.Greatest(at, kind)
    case "distinct" => new Multiset.Distinct(at, kind)
    case "top" => new Multiset.Top(at, kind, spec.get("n").asInt)
    case "quantile" => new Multiset.Quantile(at, kind, spec.get("q").asDouble)
  }

  /** The type of its value; `argument`: of its argument, null if it has none. */
  def typeOf(spec: JsonNode, argument: DataType): DataType = (spec.get("kind").asText, argument) match {
    case ("count" | "distinct", _) => LongType
    case ("sum", decimal: DecimalType) => DecimalType(spec.get("precision").asInt, decimal.scale)
    case ("avg", decimal: DecimalType) => DecimalType(spec.get("precision").asInt, decimal.scale + 4)
    case ("avg" | "quantile", _) => DoubleType
    case ("top", item) => ArrayType(item)
    case (_, same) => same
  }
}
