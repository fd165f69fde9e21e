/** The n rows of the greatest values, of equal ones the first in order R2: an aggregate whose value is rows. */
package headrace.steps

import java.util.ArrayList

import org.apache.spark.sql.catalyst.util.GenericArrayData

/** What a row is ranked by, its place, and the row, packed. */
final class Ranked(val by: Any, val order: Order, val row: Array[Byte])

/** The row stands right after the value in a row's args. State: greatest first. */
final class TopRows(at: Int, of: Kind, n: Int) extends Algebra[ArrayList[Ranked]](at) {
  def empty(): ArrayList[Ranked] = new ArrayList[Ranked]

  def add(state: ArrayList[Ranked], row: Row): Unit = if (!row.args.isNullAt(at) && fits(state, row)) {
    val order = new Order(row.time, row.src, row.part, row.off, row.id)
    put(state, new Ranked(of.get(row.args, at), order, row.args.getBinary(at + 1)))
  }

  def merge(into: ArrayList[Ranked], other: ArrayList[Ranked]): Unit = other.forEach(entry => put(into, entry))

  def value(state: ArrayList[Ranked]): Any = new GenericArrayData(Array.tabulate[Any](state.size)(i => state.get(i).row))

  /** Spares most rows of a large window a copy. */
  private def fits(state: ArrayList[Ranked], row: Row): Boolean = state.size < n || {
    val last = state.get(n - 1)
    val compared = of.compare(row.args, at, last.by)
    compared > 0 || (compared == 0 && row.compare(last.order) < 0)
  }

  private def put(state: ArrayList[Ranked], entry: Ranked): Unit = {
    var i = state.size
    while (i > 0 && outranks(entry, state.get(i - 1))) i -= 1
    state.add(i, entry)
    if (state.size > n) state.remove(n)
  }

  private def outranks(one: Ranked, other: Ranked): Boolean = {
    val compared = of.compare(one.by, other.by)
    compared > 0 || (compared == 0 && one.order.compare(other.order) < 0)
  }

  def write(state: ArrayList[Ranked], out: BlobWriter): Unit = {
    out.long(state.size)
    state.forEach { entry =>
      of.write(entry.by, out)
      entry.order.write(out)
      out.binary(entry.row)
    }
  }

  def read(in: BlobReader): ArrayList[Ranked] = {
    val size = in.int()
    val state = new ArrayList[Ranked](size)
    while (state.size < size) state.add(new Ranked(of.read(in), Order.read(in), in.binary()))
    state
  }
}
