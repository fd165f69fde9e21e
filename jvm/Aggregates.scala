/** Aggregates as small algebras: empty, add, merge, value, and remove where it is possible (rule D5).
  *
  * States are small mutable objects; `merge` changes the first, never the second. Nulls are left out, but for `first`
  * and `last`, which tell the value of a row as it is. */
package headrace.steps

import java.math.BigInteger
import java.util.{ArrayList, HashSet}

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.UTF8String

/** `at`: where in a row's args the argument stands. */
abstract class Algebra[S <: AnyRef](val at: Int) {
  def removable: Boolean = false
  def empty(): S
  def add(state: S, row: Row): Unit
  def merge(into: S, other: S): Unit

  /** A window that slides over an algebra that cannot give a value back merges again instead. */
  def remove(state: S, args: InternalRow): Unit = throw new UnsupportedOperationException

  def value(state: S): Any
  def write(state: S, out: BlobWriter): Unit
  def read(in: BlobReader): S
}

final class Counter { var n = 0L }

/** Rows; with an argument, rows where it is not null. */
final class Count(at: Int) extends Algebra[Counter](at) {
  override def removable: Boolean = true
  def empty(): Counter = new Counter
  def add(state: Counter, row: Row): Unit = if (at < 0 || !row.args.isNullAt(at)) state.n += 1
  def merge(into: Counter, other: Counter): Unit = into.n += other.n
  override def remove(state: Counter, args: InternalRow): Unit = if (at < 0 || !args.isNullAt(at)) state.n -= 1
  def value(state: Counter): Any = state.n
  def write(state: Counter, out: BlobWriter): Unit = out.long(state.n)

  def read(in: BlobReader): Counter = {
    val state = new Counter
    state.n = in.long()
    state
  }
}

/** How many, and their total: 128 bits in two halves, which no number of longs can fill; for longer numbers `wide`. */
final class Total {
  var n = 0L
  var high = 0L
  var low = 0L
  var wide: BigInteger = _

  def plus(value: Long): Unit = plus(value >> 63, value)

  def plus(otherHigh: Long, otherLow: Long): Unit = {
    low += otherLow
    high += otherHigh + (if (java.lang.Long.compareUnsigned(low, otherLow) < 0) 1 else 0)
  }

  def minus(value: Long): Unit = {
    high -= (value >> 63) + (if (java.lang.Long.compareUnsigned(low, value) < 0) 1 else 0)
    low -= value
  }

  def short: Boolean = wide == null && high == low >> 63

  def whole: BigInteger =
    if (wide != null) wide
    else if (short) BigInteger.valueOf(low)
    else BigInteger.valueOf(high).shiftLeft(64).add(new BigInteger(java.lang.Long.toUnsignedString(low)))
}

/** Ints and decimals, exact. A total that its type cannot hold is null, never wrapped. */
class ExactSum(at: Int, of: Kind, precision: Int) extends Algebra[Total](at) {
  private val decimal = of match { case exact: Kind.Exact => exact; case _ => null }
  private val long = decimal == null || decimal.short // the argument's whole units fit 64 bits
  protected val scale: Int = if (decimal == null) 0 else decimal.scale
  private val greatest = if (precision > 0) BigInteger.TEN.pow(precision).subtract(BigInteger.ONE) else null

  override def removable: Boolean = true

  def empty(): Total = {
    val state = new Total
    if (!long) state.wide = BigInteger.ZERO
    state
  }

  def add(state: Total, row: Row): Unit = if (!row.args.isNullAt(at)) {
    state.n += 1
    if (long) state.plus(units(row.args)) else state.wide = state.wide.add(wideUnits(row.args))
  }

  def merge(into: Total, other: Total): Unit = {
    into.n += other.n
    if (long) into.plus(other.high, other.low) else into.wide = into.wide.add(other.wide)
  }

  override def remove(state: Total, args: InternalRow): Unit = if (!args.isNullAt(at)) {
    state.n -= 1
    if (long) state.minus(units(args)) else state.wide = state.wide.subtract(wideUnits(args))
  }

  private def units(args: InternalRow): Long =
    if (decimal == null) args.getLong(at) else args.getDecimal(at, decimal.precision, scale).toUnscaledLong

  private def wideUnits(args: InternalRow): BigInteger = decimal.unscaled(decimal.get(args, at))

  /** Only numbers of more than 64 bits can take a total out of 128 bits. */
  def canOverflow: Boolean = !long

  def overflows(state: Total, row: Row): Boolean = !row.args.isNullAt(at) &&
    (if (state == null) BigInteger.ZERO else state.wide).add(wideUnits(row.args)).bitLength > 127

  def value(state: Total): Any =
    if (state.n == 0) null
    else if (precision == 0) { if (state.short) state.low else null }
    else fitting(state.whole, scale)

  protected def fitting(units: BigInteger, scale: Int): Any =
    if (units.abs.compareTo(greatest) > 0) null else Decimal(new java.math.BigDecimal(units, scale), precision, scale)

  def write(state: Total, out: BlobWriter): Unit = {
    out.long(state.n)
    if (!long) out.binary(state.wide.toByteArray)
    else {
      out.bool(state.short)
      out.long(state.low)
      if (!state.short) out.long(state.high)
    }
  }

  def read(in: BlobReader): Total = {
    val state = new Total
    state.n = in.long()
    if (!long) state.wide = new BigInteger(in.binary())
    else {
      val short = in.bool()
      state.low = in.long()
      state.high = if (short) state.low >> 63 else in.long()
    }
    state
  }
}

/** The mean with four more digits than the argument, rounded half up (away from zero). */
final class DecimalAvg(at: Int, of: Kind, precision: Int) extends ExactSum(at, of, precision) {
  override def value(state: Total): Any = if (state.n == 0) null else {
    val total = state.whole
    val count = BigInteger.valueOf(state.n)
    val half = total.abs.multiply(BigInteger.valueOf(20000)).add(count).divide(count.shiftLeft(1))
    fitting(if (total.signum < 0) half.negate else half, scale + 4)
  }
}

/** The mean of ints, a float. */
final class IntAvg(at: Int, of: Kind) extends ExactSum(at, of, 0) {
  override def value(state: Total): Any =
    if (state.n == 0) null else (if (state.short) state.low.toDouble else state.whole.doubleValue) / state.n.toDouble
}

final class Compensated {
  var n = 0L
  var total = 0.0
  var lost = 0.0 // to rounding
}

/** Floats, compensated (Neumaier), so that order and merging hardly show. */
class FloatSum(at: Int) extends Algebra[Compensated](at) {
  def empty(): Compensated = new Compensated

  def add(state: Compensated, row: Row): Unit = if (!row.args.isNullAt(at)) {
    state.n += 1
    plus(state, row.args.getDouble(at))
  }

  def merge(into: Compensated, other: Compensated): Unit = {
    into.n += other.n
    plus(into, other.total)
    into.lost += other.lost
  }

  private def plus(state: Compensated, value: Double): Unit = {
    val total = state.total + value
    state.lost += (if (Math.abs(state.total) >= Math.abs(value)) (state.total - total) + value else (value - total) + state.total)
    state.total = total
  }

  def value(state: Compensated): Any = if (state.n == 0) null else finite(state.total + state.lost)

  protected def finite(value: Double): Any = if (java.lang.Double.isFinite(value)) value else null

  def write(state: Compensated, out: BlobWriter): Unit = {
    out.long(state.n)
    out.double(state.total)
    out.double(state.lost)
  }

  def read(in: BlobReader): Compensated = {
    val state = new Compensated
    state.n = in.long()
    state.total = in.double()
    state.lost = in.double()
    state
  }
}

final class FloatAvg(at: Int) extends FloatSum(at) {
  override def value(state: Compensated): Any =
    if (state.n == 0) null else finite((state.total + state.lost) / state.n.toDouble)
}

final class Extreme { var value: Any = _ }

/** The least value (`sign` = 1) or the greatest (-1). Texts compare by code points, that is by their UTF-8 bytes. */
final class Least(at: Int, of: Kind, sign: Int) extends Algebra[Extreme](at) {
  def empty(): Extreme = new Extreme

  def add(state: Extreme, row: Row): Unit =
    if (!row.args.isNullAt(at) && (state.value == null || of.compare(row.args, at, state.value) * sign < 0))
      state.value = of.get(row.args, at)

  def merge(into: Extreme, other: Extreme): Unit =
    if (other.value != null && (into.value == null || of.compare(other.value, into.value) * sign < 0)) into.value = other.value

  def value(state: Extreme): Any = state.value
  def write(state: Extreme, out: BlobWriter): Unit = of.writeNullable(state.value, out)

  def read(in: BlobReader): Extreme = {
    val state = new Extreme
    state.value = of.readNullable(in)
    state
  }
}

/** A value and the place of its row; no row yet: `order` is null. */
final class Ordered {
  var order: Order = _
  var value: Any = _
}

/** The value of the row that is first in order R2 (`sign` = 1) or last (-1), null if it is null. */
final class First(at: Int, of: Kind, sign: Int) extends Algebra[Ordered](at) {
  def empty(): Ordered = new Ordered

  def add(state: Ordered, row: Row): Unit = if (state.order == null || row.compare(state.order) * sign < 0) {
    state.order = new Order(row.time, row.src, row.part, row.off, row.id)
    state.value = of.nullable(row.args, at)
  }

  def merge(into: Ordered, other: Ordered): Unit =
    if (other.order != null && (into.order == null || other.order.compare(into.order) * sign < 0)) {
      into.order = other.order
      into.value = other.value
    }

  def value(state: Ordered): Any = state.value

  def write(state: Ordered, out: BlobWriter): Unit = {
    out.bool(state.order != null)
    if (state.order != null) {
      state.order.write(out)
      of.writeNullable(state.value, out)
    }
  }

  def read(in: BlobReader): Ordered = {
    val state = new Ordered
    if (in.bool()) {
      state.order = Order.read(in)
      state.value = of.readNullable(in)
    }
    state
  }
}

/** Canonical bytes while they are few, then a sketch. Which one depends on the values alone, not on their order. */
final class Different(exact: Int) {
  var few: HashSet[UTF8String] = if (exact > 0) new HashSet[UTF8String] else null
  var many: Hll = if (exact > 0) null else new Hll

  def add(value: UTF8String): Unit =
    if (many != null) many.add(Hll.hash64(value.getBytes))
    else if (!few.contains(value)) {
      few.add(value.copy()) // the given one may lie in the row's memory
      if (few.size > exact) grow()
    }

  def merge(other: Different): Unit =
    if (other.many != null) {
      if (many == null) grow()
      many.merge(other.many)
    } else other.few.forEach(value => add(value))

  private def grow(): Unit = {
    many = new Hll
    few.forEach(value => many.add(Hll.hash64(value.getBytes)))
    few = null
  }
}

/** Exact up to `exact` different values, then HyperLogLog; 0: a sketch from the start. */
final class Distinct(at: Int, of: Kind, exact: Int) extends Algebra[Different](at) {
  private val text = of eq Kind.Text

  def empty(): Different = new Different(exact)

  def add(state: Different, row: Row): Unit = if (!row.args.isNullAt(at))
    state.add(if (text) row.args.getUTF8String(at) else UTF8String.fromBytes(of.canonical(of.get(row.args, at))))

  def merge(into: Different, other: Different): Unit = into.merge(other)

  def value(state: Different): Any = if (state.many != null) state.many.estimate else state.few.size.toLong

  def write(state: Different, out: BlobWriter): Unit = {
    out.bool(state.many != null)
    if (state.many != null) state.many.write(out)
    else {
      out.long(state.few.size)
      state.few.forEach(value => out.binary(value.getBytes))
    }
  }

  def read(in: BlobReader): Different = {
    val state = new Different(exact)
    if (in.bool()) {
      state.few = null
      state.many = new Hll().read(in)
    } else {
      var left = in.int()
      while (left > 0) {
        state.few.add(UTF8String.fromBytes(in.binary()))
        left -= 1
      }
    }
    state
  }
}

/** A DDSketch. */
final class Quantile(at: Int, of: Kind, q: Double) extends Algebra[DdSketch](at) {
  def empty(): DdSketch = new DdSketch

  def add(state: DdSketch, row: Row): Unit = if (!row.args.isNullAt(at)) state.add(of match {
    case Kind.Real => row.args.getDouble(at)
    case exact: Kind.Exact => exact.unscaled(exact.get(row.args, at)).doubleValue / Math.pow(10.0, exact.scale)
    case _ => row.args.getLong(at).toDouble
  })

  def merge(into: DdSketch, other: DdSketch): Unit = into.merge(other)
  def value(state: DdSketch): Any = state.quantile(q)
  def write(state: DdSketch, out: BlobWriter): Unit = state.write(out)
  def read(in: BlobReader): DdSketch = new DdSketch().read(in)
}

/** The n greatest values. State: least first. */
final class Top(at: Int, of: Kind, n: Int) extends Algebra[ArrayList[Any]](at) {
  def empty(): ArrayList[Any] = new ArrayList[Any]

  def add(state: ArrayList[Any], row: Row): Unit =
    if (!row.args.isNullAt(at) && (state.size < n || of.compare(row.args, at, state.get(0)) > 0)) put(state, of.get(row.args, at))

  def merge(into: ArrayList[Any], other: ArrayList[Any]): Unit =
    other.forEach(value => if (into.size < n || of.compare(value, into.get(0)) > 0) put(into, value))

  private def put(state: ArrayList[Any], value: Any): Unit = {
    var i = state.size
    while (i > 0 && of.compare(value, state.get(i - 1)) < 0) i -= 1
    state.add(i, value)
    if (state.size > n) state.remove(0)
  }

  def value(state: ArrayList[Any]): Any = new GenericArrayData(Array.tabulate[Any](state.size)(i => state.get(state.size - 1 - i)))

  def write(state: ArrayList[Any], out: BlobWriter): Unit = {
    out.long(state.size)
    state.forEach(value => of.write(value, out))
  }

  def read(in: BlobReader): ArrayList[Any] = {
    val size = in.int()
    val state = new ArrayList[Any](size)
    while (state.size < size) state.add(of.read(in))
    state
  }
}

/** The values of the first n rows in order R2. State: (order, value) in that order. */
final class Collect(at: Int, of: Kind, n: Int) extends Algebra[ArrayList[Ordered]](at) {
  def empty(): ArrayList[Ordered] = new ArrayList[Ordered]

  def add(state: ArrayList[Ordered], row: Row): Unit = if (!row.args.isNullAt(at) && fits(state, row)) {
    val entry = new Ordered
    entry.order = new Order(row.time, row.src, row.part, row.off, row.id)
    entry.value = of.get(row.args, at)
    put(state, entry)
  }

  def merge(into: ArrayList[Ordered], other: ArrayList[Ordered]): Unit =
    other.forEach(entry => if (fits(into, entry.order)) put(into, entry))

  private def fits(state: ArrayList[Ordered], order: Order): Boolean =
    state.size < n || order.compare(state.get(state.size - 1).order) < 0

  private def put(state: ArrayList[Ordered], entry: Ordered): Unit = {
    var i = state.size
    while (i > 0 && entry.order.compare(state.get(i - 1).order) < 0) i -= 1
    state.add(i, entry)
    if (state.size > n) state.remove(n)
  }

  def value(state: ArrayList[Ordered]): Any = new GenericArrayData(Array.tabulate[Any](state.size)(i => state.get(i).value))

  def write(state: ArrayList[Ordered], out: BlobWriter): Unit = {
    out.long(state.size)
    state.forEach { entry =>
      entry.order.write(out)
      of.write(entry.value, out)
    }
  }

  def read(in: BlobReader): ArrayList[Ordered] = {
    val size = in.int()
    val state = new ArrayList[Ordered](size)
    while (state.size < size) {
      val entry = new Ordered
      entry.order = Order.read(in)
      entry.value = of.read(in)
      state.add(entry)
    }
    state
  }
}

object Algebra {
  private val DISTINCT_EXACT = 1000

  /** The algebra of one aggregate, whose argument has this kind (null: none) and stands at this place. */
  def of(spec: JsonNode, at: Int, kind: Kind): Algebra[_ <: AnyRef] = {
    val precision = spec.get("precision").asInt
    spec.get("kind").asText match {
      case "count" => new Count(at)
      case "sum" => if (kind eq Kind.Real) new FloatSum(at) else new ExactSum(at, kind, precision)
      case "avg" if kind eq Kind.Real => new FloatAvg(at)
      case "avg" => if (kind.isInstanceOf[Kind.Exact]) new DecimalAvg(at, kind, precision) else new IntAvg(at, kind)
      case "min" => new Least(at, kind, 1)
      case "max" => new Least(at, kind, -1)
      case "first" => new First(at, kind, 1)
      case "last" => new First(at, kind, -1)
      case "distinct" => new Distinct(at, kind, DISTINCT_EXACT)
      case "distinct_approx" => new Distinct(at, kind, 0)
      case "quantile" => new Quantile(at, kind, spec.get("q").asDouble)
      case "top" => new Top(at, kind, spec.get("n").asInt)
      case "collect" => new Collect(at, kind, spec.get("n").asInt)
    }
  }
}
