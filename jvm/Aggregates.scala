/** Aggregates as small algebras: empty, add, merge, value, and remove where it is possible (rule D5).
  *
  * States are small mutable objects; `merge` changes the first, never the second. Nulls are left out, but for `first`
  * and `last`, which tell the value of a row as it is. */
package headrace.steps

import java.util.{ArrayList, HashSet}

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
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

  /** So many longs hold a state, all 0 an empty one; 0: it needs an object. */
  def width: Int = 0
  def load(state: S, words: Array[Long], from: Int): Unit = throw new UnsupportedOperationException
  def store(state: S, words: Array[Long], from: Int): Unit = throw new UnsupportedOperationException
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

  override def width: Int = 1
  override def load(state: Counter, words: Array[Long], from: Int): Unit = state.n = words(from)
  override def store(state: Counter, words: Array[Long], from: Int): Unit = words(from) = state.n
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

/** The value of the row that is first in order R2 (`sign` = 1) or last (-1), null if it is null. Of rows of one place, as
  * tiles have them (Tiles.scala), that which was added first or last. */
final class First(at: Int, of: Kind, sign: Int) extends Algebra[Ordered](at) {
  private val tie = if (sign > 0) 0 else 1

  def empty(): Ordered = new Ordered

  def add(state: Ordered, row: Row): Unit = if (state.order == null || row.compare(state.order) * sign < tie) {
    state.order = new Order(row.time, row.src, row.part, row.off, row.id)
    state.value = of.nullable(row.args, at)
  }

  def merge(into: Ordered, other: Ordered): Unit =
    if (other.order != null && (into.order == null || other.order.compare(into.order) * sign < tie)) {
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
  def of(spec: JsonNode, at: Int, kind: Kind): Algebra[_ <: AnyRef] = spec.get("kind").asText match {
    case "distinct" => new Distinct(at, kind, DISTINCT_EXACT)
    case "distinct_approx" => new Distinct(at, kind, 0)
    case "quantile" => new Quantile(at, kind, spec.get("q").asDouble)
    case "top" => new Top(at, kind, spec.get("n").asInt)
    case "top_rows" => new TopRows(at, kind, spec.get("n").asInt)
    case "collect" => new Collect(at, kind, spec.get("n").asInt)
    case name => of(name, at, kind, spec.get("precision").asInt)
  }

  /** Of those that are known by their name. `precision`: of a decimal result. */
  def of(name: String, at: Int, kind: Kind, precision: Int): Algebra[_ <: AnyRef] = name match {
    case "count" => new Count(at)
    case "sum" => if (kind eq Kind.Real) new FloatSum(at) else new ExactSum(at, kind, precision)
    case "avg" if kind eq Kind.Real => new FloatAvg(at)
    case "avg" => if (kind.isInstanceOf[Kind.Exact]) new DecimalAvg(at, kind, precision) else new IntAvg(at, kind)
    case "stddev" => if (kind eq Kind.Real) new FloatSpread(at) else new ExactSpread(at, kind)
    case "min" => new Least(at, kind, 1)
    case "max" => new Least(at, kind, -1)
    case "first" => new First(at, kind, 1)
    case "last" => new First(at, kind, -1)
  }
}
