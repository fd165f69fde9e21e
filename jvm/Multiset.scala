/** Aggregates read off the multiset of a group's values, which can give each of them back (rules J5, D5). */
package headrace.steps

import java.util.{ArrayList, Collections, Comparator}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData

/** A value and how often it is there. */
final class Occurring(val value: Any, var n: Long)

/** Different values in their order. Nulls are left out. */
abstract class Multiset(at: Int, of: Kind) extends Retractable[ArrayList[Occurring]](at) {
  def empty(): ArrayList[Occurring] = new ArrayList[Occurring]

  def add(state: ArrayList[Occurring], row: Row): Unit = if (!row.args.isNullAt(at)) {
    val value = valueOf(row.args)
    val found = find(state, value)
    if (found >= 0) state.get(found).n += 1 else state.add(-found - 1, new Occurring(value, 1))
  }

  override def remove(state: ArrayList[Occurring], args: InternalRow): Unit = if (!args.isNullAt(at)) {
    val found = find(state, valueOf(args))
    state.get(found).n -= 1
    if (state.get(found).n == 0) state.remove(found)
  }

  private def valueOf(args: InternalRow): Any = of.get(args, at) match {
    case real: Double => real + 0.0 // makes 0.0 of -0.0: they are one value
    case other => other
  }

  private def find(state: ArrayList[Occurring], value: Any): Int =
    Collections.binarySearch[Occurring](state, new Occurring(value, 0), order)

  private val order: Comparator[Occurring] = (one, other) => of.compare(one.value, other.value)

  def write(state: ArrayList[Occurring], out: BlobWriter): Unit = {
    out.long(state.size)
    state.forEach { one =>
      of.write(one.value, out)
      out.long(one.n)
    }
  }

  def read(in: BlobReader): ArrayList[Occurring] = {
    val size = in.int()
    val state = new ArrayList[Occurring](size)
    while (state.size < size) state.add(new Occurring(of.read(in), in.long()))
    state
  }
}

object Multiset {
  final class Least(at: Int, of: Kind) extends Multiset(at, of) {
    def value(state: ArrayList[Occurring]): Any = if (state.isEmpty) null else state.get(0).value
  }

  final class Greatest(at: Int, of: Kind) extends Multiset(at, of) {
    def value(state: ArrayList[Occurring]): Any = if (state.isEmpty) null else state.get(state.size - 1).value
  }

  final class Distinct(at: Int, of: Kind) extends Multiset(at, of) {
    def value(state: ArrayList[Occurring]): Any = state.size.toLong
  }

  /** The n greatest values, each as often as it is there. */
  final class Top(at: Int, of: Kind, n: Int) extends Multiset(at, of) {
    def value(state: ArrayList[Occurring]): Any = {
      val found = new ArrayList[Any](n)
      var i = state.size - 1
      while (i >= 0 && found.size < n) {
        val one = state.get(i)
        var left = Math.min(one.n, n - found.size)
        while (left > 0) {
          found.add(one.value)
          left -= 1
        }
        i -= 1
      }
      new GenericArrayData(found.toArray)
    }
  }

  /** The nearest rank, as DdSketch defines it, but exact. */
  final class Quantile(at: Int, of: Kind, q: Double) extends Multiset(at, of) {
    def value(state: ArrayList[Occurring]): Any = {
      var n = 0L
      state.forEach(one => n += one.n)
      var rank = Math.max(0, Math.ceil(q * n - DdSketch.ROUNDING).toLong - 1)
      var i = 0
      while (i < state.size) {
        rank -= state.get(i).n
        if (rank < 0) return number(state.get(i).value)
        i += 1
      }
      null
    }

    private def number(value: Any): Double = of match {
      case exact: Kind.Exact => exact.unscaled(value).doubleValue / Math.pow(10.0, exact.scale)
      case Kind.Real => value.asInstanceOf[Double]
      case _ => value.asInstanceOf[Long].toDouble
    }
  }
}
