/** Slots: what conditions and outputs of a pattern ask of the rows taken so far (rule P5). */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, JoinedRow, Predicate, UnsafeRow}
import org.apache.spark.sql.catalyst.util.GenericArrayData

/** `kinds`: of the columns of a row. */
final class Slots(list: JsonNode, nfa: Nfa, kinds: Array[Kind]) {
  private val slots: Array[Slot] = Array.tabulate(list.size)(i => slot(list.get(i)))

  /** The slots over the rows up to this node; null: no row is taken yet. */
  def values(node: Node): InternalRow = {
    val found = new Array[Any](slots.length)
    var i = 0
    while (i < slots.length) {
      found(i) = slots(i).value(node)
      i += 1
    }
    new GenericInternalRow(found)
  }

  private def slot(node: JsonNode): Slot = {
    val (fn, step) = (node.get("fn").asText, if (node.get("step").asText.isEmpty) Slot.ANY else nfa.stepOf(node.get("step").asText))
    if (node.get("column").isNull) return new Counting(step)
    val at = node.get("column").asInt
    fn match {
      case "first" => new OfFirst(step, at, kinds(at))
      case "last" => new OfLast(step, at, kinds(at))
      case "list" => new Listed(step, at, kinds(at))
      case _ => new Aggregated(step, Algebra.of(fn, at, kinds(at), node.get("precision").asInt).asInstanceOf[Algebra[AnyRef]])
    }
  }
}

/** Of the rows that `step` took. */
abstract class Slot(step: Int) {
  def value(last: Node): Any

  /** The last of its nodes up to this one, or null. */
  protected def upTo(node: Node): Node = {
    var found = node
    while (found != null && step != Slot.ANY && found.step != step) found = found.before
    found
  }

  /** Its rows, last first. */
  protected def rows(last: Node): ArrayList[UnsafeRow] = {
    val found = new ArrayList[UnsafeRow]
    var node = upTo(last)
    while (node != null) {
      found.add(node.kept.row.args)
      node = upTo(node.before)
    }
    found
  }
}

object Slot {
  final val ANY = -1 // the rows of all steps
}

final class Counting(step: Int) extends Slot(step) {
  def value(last: Node): Any = rows(last).size.toLong
}

final class OfLast(step: Int, at: Int, of: Kind) extends Slot(step) {
  def value(last: Node): Any = {
    val node = upTo(last)
    if (node == null) null else of.nullable(node.kept.row.args, at)
  }
}

final class OfFirst(step: Int, at: Int, of: Kind) extends Slot(step) {
  def value(last: Node): Any = {
    val found = rows(last)
    if (found.isEmpty) null else of.nullable(found.get(found.size - 1), at)
  }
}

final class Listed(step: Int, at: Int, of: Kind) extends Slot(step) {
  def value(last: Node): Any = {
    val found = rows(last)
    found.removeIf(_.isNullAt(at))
    new GenericArrayData(Array.tabulate[Any](found.size)(i => of.get(found.get(found.size - 1 - i), at)))
  }
}

final class Aggregated(step: Int, algebra: Algebra[AnyRef]) extends Slot(step) {
  private val row = new Row // as an algebra sees one: none of these asks for its place

  def value(last: Node): Any = {
    val found = rows(last)
    val state = algebra.empty()
    var i = found.size - 1
    while (i >= 0) {
      row.args = found.get(i)
      algebra.add(state, row)
      i -= 1
    }
    algebra.value(state)
  }
}

/** A condition over the columns of the row in its turn, then its slots. Null is not true. */
final class Condition(slots: Slots, test: Expression) {
  private val predicate = Predicate.createInterpreted(test)
  private val asked = new JoinedRow

  def holds(args: UnsafeRow, taken: Node): Boolean = predicate.eval(asked(args, slots.values(taken)))
}
