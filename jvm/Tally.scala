/** The aggregates of one window side by side: a state for each. */
package headrace.steps

import org.apache.spark.sql.catalyst.InternalRow

import com.fasterxml.jackson.databind.JsonNode

/** `places`: where each aggregate's argument stands in a row's args (-1: none); `kinds`: of the args. */
final class Tally(
    specs: JsonNode,
    places: Array[Int],
    kinds: Array[Kind],
    algebra: (JsonNode, Int, Kind) => Algebra[_ <: AnyRef] = Algebra.of
) {
  private val algebras: Array[Algebra[AnyRef]] = Array.tabulate(specs.size) { i =>
    algebra(specs.get(i), places(i), if (places(i) < 0) null else kinds(places(i))).asInstanceOf[Algebra[AnyRef]]
  }
  private val size = algebras.length

  /** So many longs hold all states, one behind the other; 0: an aggregate needs an object. */
  val width: Int = if (algebras.exists(_.width == 0)) 0 else algebras.map(_.width).sum
  private lazy val held = empty() // states while they are worked on that lie in words

  val removable: Boolean = algebras.forall(_.removable)

  /** Only these can refuse a row; for most windows there are none. */
  private val floats = places.filter(at => at >= 0 && (kinds(at) eq Kind.Real)).distinct
  private val sums: Array[Int] = algebras.indices.filter(i => (algebras(i): AnyRef) match {
    case sum: ExactSum => sum.canOverflow
    case _ => false
  }).toArray

  /** Whether which row is refused depends on the order in which they come. */
  val ordered: Boolean = sums.nonEmpty

  def empty(): Array[AnyRef] = {
    val states = new Array[AnyRef](size)
    var i = 0
    while (i < size) {
      states(i) = algebras(i).empty()
      i += 1
    }
    states
  }

  /** Why the row cannot be counted here, or -1: asked before `add`, so that a refused row leaves no trace. */
  def refuses(states: Array[AnyRef], row: Row): Int = {
    if (noNumber(row.args)) return Verdict.NAN
    var i = 0
    while (i < sums.length) {
      val at = sums(i)
      val total = if (states == null) null else states(at).asInstanceOf[Total]
      if ((algebras(at): AnyRef).asInstanceOf[ExactSum].overflows(total, row)) return Verdict.OVERFLOW
      i += 1
    }
    -1
  }

  /** Whether an argument is a float that is no number (rule B3). */
  def noNumber(args: InternalRow): Boolean = {
    var i = 0
    while (i < floats.length) {
      if (!args.isNullAt(floats(i)) && !java.lang.Double.isFinite(args.getDouble(floats(i)))) return true
      i += 1
    }
    false
  }

  def add(states: Array[AnyRef], row: Row): Unit = {
    var i = 0
    while (i < size) {
      algebras(i).add(states(i), row)
      i += 1
    }
  }

  def add(words: Array[Long], from: Int, row: Row): Unit = {
    var at = from
    var i = 0
    while (i < size) {
      algebras(i).load(held(i), words, at)
      algebras(i).add(held(i), row)
      algebras(i).store(held(i), words, at)
      at += algebras(i).width
      i += 1
    }
  }

  def merge(into: Array[AnyRef], other: Array[AnyRef]): Unit = {
    var i = 0
    while (i < size) {
      algebras(i).merge(into(i), other(i))
      i += 1
    }
  }

  def remove(states: Array[AnyRef], args: InternalRow): Unit = {
    var i = 0
    while (i < size) {
      algebras(i).remove(states(i), args)
      i += 1
    }
  }

  def values(states: Array[AnyRef]): Array[Any] = {
    val found = new Array[Any](size)
    var i = 0
    while (i < size) {
      found(i) = algebras(i).value(states(i))
      i += 1
    }
    found
  }

  def write(states: Array[AnyRef], out: BlobWriter): Unit = {
    var i = 0
    while (i < size) {
      algebras(i).write(states(i), out)
      i += 1
    }
  }

  def write(words: Array[Long], from: Int, out: BlobWriter): Unit = {
    var at = from
    var i = 0
    while (i < size) {
      algebras(i).load(held(i), words, at)
      at += algebras(i).width
      i += 1
    }
    write(held, out)
  }

  def read(in: BlobReader): Array[AnyRef] = {
    val states = new Array[AnyRef](size)
    var i = 0
    while (i < size) {
      states(i) = algebras(i).read(in)
      i += 1
    }
    states
  }
}
