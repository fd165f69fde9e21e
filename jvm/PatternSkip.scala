/** Which matches come out, and what they take with them (`after`); what is beyond the limit is refused, and told. */
package headrace.steps

import java.util.ArrayList

import headrace.Stage

final class PatternSkip(spec: PatternSpec) {

  /** Tells the matches that wait for nothing. */
  def settle(state: PatternState): Unit = {
    if (spec.after == "none") {
      state.complete.forEach(one => tell(state, one))
      state.complete.clear()
    }
    while (!state.complete.isEmpty) {
      val one = earliest(state.complete)
      while (!state.runs.isEmpty && state.runs.get(0).open.length == 0) state.runs.remove(0)
      if (!state.runs.isEmpty && state.runs.get(0).node.first.turn < one.node.first.turn) return
      state.complete.remove(one)
      skip(state, one.node)
      tell(state, one)
    }
  }

  private def earliest(complete: ArrayList[Complete]): Complete = {
    var least = complete.get(0)
    complete.forEach(one => if (one.node.first.turn < least.node.first.turn) least = one)
    least
  }

  /** Drops what began before the turn that the policy names. */
  private def skip(state: PatternState, node: Node): Unit = {
    val turn = skippedTo(node)
    state.runs.removeIf { run =>
      if (run.open.length > 0 && run.node.first.turn < turn) {
        run.open = Array.emptyIntArray
        state.buffer.release(run.node)
      }
      run.open.length == 0
    }
    state.complete.removeIf { one =>
      val gone = one.node.first.turn < turn
      if (gone) state.buffer.release(one.node)
      gone
    }
  }

  private def skippedTo(node: Node): Long = spec.after match {
    case "next" => node.first.turn + 1
    case "past last" => node.kept.turn + 1
    case _ =>
      val turns = node.path.filter(_.step == spec.to).map(_.kept.turn)
      if (turns.isEmpty) 0 else if (spec.after == "to first") turns.head else turns.last
  }

  /** Keeps to the limit: those that began last are not opened, and that is told. */
  def refuse(state: PatternState, row: HeldRow): Unit = {
    var refused = 0
    while (state.runs.size + state.complete.size > spec.limit) {
      val last =
        if (!state.runs.isEmpty) state.runs.remove(state.runs.size - 1).node
        else state.complete.remove(state.complete.size - 1).node
      state.buffer.release(last)
      refused += 1
    }
    if (refused > 0) state.found.add(new Given(Stage.REFUSED, row.time, row.args, row, ""))
  }

  private def tell(state: PatternState, one: Complete): Unit = {
    state.found.add(told(Stage.ROWS, "match", one.node, one.time))
    state.buffer.release(one.node)
  }

  /** Rule D2: a match is known by its rows, and by the steps that took them. */
  def told(port: Int, kind: String, node: Node, time: Long): Given = {
    def cause = node.path.map(one => s"${spec.nfa.steps(one.step).name}=${Cause.of(one.kept.row, spec.topics)}")
    new Given(port, time, spec.output.values(node), null, cause.mkString(s"$kind/", ",", ""))
  }
}
