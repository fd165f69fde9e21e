/** A pattern as an automaton: positions that rows are taken at, and the edges a partial match can go on by.
  *
  * It is compiled in Python (pattern_nfa.py, where the meaning of every field stands) and only read here. */
package headrace.steps

import com.fasterxml.jackson.databind.JsonNode

/** What a row must be: a boolean column, a condition that also sees earlier rows, or both; -1: not asked. */
final class Criterion(val flag: Int, val condition: Int)

final class Never(val criterion: Criterion, val directly: Boolean, val within: Long)

/** A step that takes rows. `until`: null if there is none. */
final class Taking(val name: String, val criterion: Criterion, val until: Criterion)

/** `lifted`: by step, the edge it becomes when that greedy step's until comes by; -1: none. */
final class Edge(
    val to: Int,
    val how: Int,
    val nevers: Array[Never],
    val greedy: Array[Int],
    val within: Long,
    val repeats: Boolean,
    val lifted: Array[Int]
) {
  val allDirectly: Boolean = nevers.forall(_.directly)
}

final class Nfa(node: JsonNode) {
  val steps: Array[Taking] = each(node.get("steps")) { step =>
    val until = step.get("until")
    new Taking(step.get("name").asText, criterion(step), if (until.isNull) null else criterion(until))
  }
  val stepAt: Array[Int] = ints(node.get("step_at"))
  val edges: Array[Edge] = each(node.get("edges"))(edge)
  val start: Array[Edge] = each(node.get("start"))(edge)
  val out: Array[Array[Int]] = each(node.get("out"))(ints)
  val ends: Array[Boolean] = each(node.get("ends"))(_.asBoolean)

  /** The number of a step; -1: there is none of that name. */
  def stepOf(name: String): Int = steps.indexWhere(_.name == name)

  private def edge(node: JsonNode): Edge = {
    val lifted = Array.fill(steps.length)(-1)
    node.get("lifted").forEach(pair => lifted(pair.get(0).asInt) = pair.get(1).asInt)
    new Edge(
      node.get("to").asInt,
      Nfa.HOW.indexOf(node.get("how").asText),
      each(node.get("nevers"))(never => new Never(criterion(never), never.get("directly").asBoolean, Nfa.bound(never.get("within")))),
      ints(node.get("greedy")),
      Nfa.bound(node.get("within")),
      node.get("repeats").asBoolean,
      lifted
    )
  }

  private def criterion(node: JsonNode): Criterion =
    new Criterion(if (node.get("flag").isNull) -1 else node.get("flag").asInt, if (node.get("condition").isNull) -1 else node.get("condition").asInt)

  private def ints(list: JsonNode): Array[Int] = each(list)(_.asInt)

  private def each[T: reflect.ClassTag](list: JsonNode)(make: JsonNode => T): Array[T] =
    Array.tabulate(list.size)(i => make(list.get(i)))
}

object Nfa {
  final val END = -1 // the position behind the last one

  // How a row is reached; `first` and the end's never are not asked.
  private val HOW = Array("next", "then", "then_any")
  final val NEXT = 0
  final val THEN = 1
  final val THEN_ANY = 2

  /** A bound in micros; NEVER: none. */
  def bound(node: JsonNode): Long = if (node.isNull) Times.NEVER else node.asLong
}
