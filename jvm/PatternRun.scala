/** Partial matches: how one meets a row, and when time closes what is open to it. */
package headrace.steps

import java.util.{ArrayList, Arrays}

final class PatternRuns(spec: PatternSpec) {
  private val nfa = spec.nfa
  private val seen = new Seen(spec)
  private val taken = new Positions(nfa)
  private val still = new Array[Int](nfa.edges.length)

  /** The row takes edges, closes them or passes them by: what is taken grows, what is still open stays. */
  def meet(state: PatternState, run: Run, kept: Kept, complete: ArrayList[Complete]): Unit = {
    seen.look(kept, run.node)
    taken.clear()
    var left = 0
    var ends = false
    var i = 0
    while (i < run.open.length) {
      val number = lifted(run.open(i))
      val edge = nfa.edges(number)
      if (!closes(edge)) {
        val stays =
          if (edge.to == Nfa.END) {
            ends ||= edge.allDirectly // the first row after it was not x
            true
          } else {
            val fits = takes(edge)
            edge.how == Nfa.THEN_ANY || (edge.how == Nfa.THEN && !fits)
          }
        if (stays) {
          still(left) = number
          left += 1
        }
      }
      i += 1
    }
    if (!Arrays.equals(still, 0, left, run.open, 0, run.open.length)) run.open = Arrays.copyOf(still, left)
    if (ends) complete.add(ended(state, run, kept.row.time))
    if (run.open.length > 0) state.runs.add(run)
    grow(state, run.node, kept, complete)
    if (run.open.length == 0) state.buffer.release(run.node)
  }

  /** Every first step that the row fits begins a partial match. */
  def begin(state: PatternState, kept: Kept, complete: ArrayList[Complete]): Unit = {
    seen.look(kept, null)
    taken.clear()
    nfa.start.foreach { edge =>
      if (!edge.greedy.exists(step => seen.fits(nfa.steps(step).criterion) && !over(nfa.steps(step)))) takes(edge)
    }
    grow(state, null, kept, complete)
  }

  /** The run is a match now, once and for all: no other never at its end is waited for. */
  def ended(state: PatternState, run: Run, time: Long): Complete = {
    run.matches = true
    run.open = run.open.filter(number => nfa.edges(number).to != Nfa.END)
    new Complete(state.buffer.hold(run.node), time)
  }

  /** Whether the row fits the step it leads to; if so it is taken there, unless it ends the step's repetition. */
  private def takes(edge: Edge): Boolean = {
    val target = nfa.steps(nfa.stepAt(edge.to))
    if (!seen.after(edge.within) || !seen.fits(target.criterion)) return false
    if (!over(target)) taken.add(edge.to)
    true
  }

  /** One partial match for each step that takes the row, however many ways lead there: so none is found twice. */
  private def grow(state: PatternState, before: Node, kept: Kept, complete: ArrayList[Complete]): Unit =
    taken.eachStep { (step, edges, ends) =>
      val run = new Run(state.buffer.grow(before, kept, step), edges, false)
      if (ends) complete.add(ended(state, run, kept.row.time))
      if (run.open.length > 0) state.runs.add(run) else state.buffer.release(run.node)
    }

  /** The edge without the greedy steps whose repetition this row ends. */
  private def lifted(open: Int): Int = {
    var number = open
    nfa.edges(open).greedy.foreach { step =>
      val without = nfa.edges(number).lifted(step)
      if (without >= 0 && over(nfa.steps(step))) number = without
    }
    number
  }

  /** Whether the row closes the edge without taking it. */
  private def closes(edge: Edge): Boolean =
    edge.nevers.exists { never =>
      (seen.directly || !never.directly) && seen.after(never.within) && seen.fits(never.criterion)
    } || edge.greedy.exists(step => seen.fits(nfa.steps(step).criterion)) ||
      (edge.repeats && over(nfa.steps(nfa.stepAt(edge.to))))

  /** Whether the row ends the step's repetition. */
  private def over(target: Taking): Boolean = target.until != null && seen.fits(target.until)

  /** When the first of its edges is closed by time; NEVER: by rows only. Asked at every row of the key, answered anew
    * when edges change. */
  def deadline(run: Run): Long = {
    if (run.asked ne run.open) {
      run.asked = run.open
      run.deadline = Times.NEVER
      run.open.foreach(number => run.deadline = Math.min(run.deadline, closesAt(run, number)))
    }
    run.deadline
  }

  /** When this edge is closed by time, micros. */
  def closesAt(run: Run, number: Int): Long = {
    val within = nfa.edges(number).within
    Math.min(
      if (spec.within == Times.NEVER) Times.NEVER else run.node.first.row.time + spec.within,
      if (within == Times.NEVER) Times.NEVER else run.node.kept.row.time + within
    )
  }
}

/** A row as a partial match sees it. Too far away in time from the first row it fits nothing: only by arrival can such a
  * row come before the watermark has closed the partial match. */
final class Seen(spec: PatternSpec) {
  private val answers = new Array[Byte](spec.conditions.length) // 0: not asked yet
  private var row: HeldRow = _
  private var node: Node = _
  private var near = true
  var directly = false

  /** `taken`: the last node of the partial match; null: it only begins. */
  def look(kept: Kept, taken: Node): Unit = {
    row = kept.row
    node = taken
    directly = taken != null && kept.turn == taken.kept.turn + 1
    near = taken == null || isNear(taken.first.row, spec.within)
    Arrays.fill(answers, 0.toByte)
  }

  def fits(criterion: Criterion): Boolean =
    near && (criterion.flag < 0 || (!row.args.isNullAt(criterion.flag) && row.args.getBoolean(criterion.flag))) &&
      (criterion.condition < 0 || holds(criterion.condition))

  /** Whether it comes less than that after the last row taken. */
  def after(within: Long): Boolean = node == null || isNear(node.kept.row, within)

  private def holds(condition: Int): Boolean = {
    if (answers(condition) == 0) answers(condition) = if (spec.conditions(condition).holds(row.args, node)) 1 else -1
    answers(condition) == 1
  }

  /** Rule P3: strictly less. By arrival a row may be older than the one before it. */
  private def isNear(other: HeldRow, within: Long): Boolean = Math.abs(row.time - other.time) < within
}

/** The positions at which a row is taken. */
final class Positions(nfa: Nfa) {
  private val isIn = new Array[Boolean](nfa.stepAt.length)
  private val list = new Array[Int](nfa.stepAt.length)
  private var size = 0

  def clear(): Unit = {
    while (size > 0) {
      size -= 1
      isIn(list(size)) = false
    }
  }

  def add(position: Int): Unit = if (!isIn(position)) {
    isIn(position) = true
    list(size) = position
    size += 1
  }

  /** Step by step: its number, the edges out of its positions, and whether one of them ends the pattern. */
  def eachStep(tell: (Int, Array[Int], Boolean) => Unit): Unit =
    if (size == 1) tell(nfa.stepAt(list(0)), nfa.out(list(0)), nfa.ends(list(0)))
    else if (size > 1) list.take(size).groupBy(nfa.stepAt(_)).toArray.sortBy(_._1).foreach { case (step, positions) =>
      tell(step, positions.flatMap(nfa.out(_)).sorted, positions.exists(nfa.ends(_)))
    }
}
