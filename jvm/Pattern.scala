/** Patterns: rows of a key that follow each other as a pattern says (rules P1 to P5); their meaning stands in pattern.py.
  *
  * Rows have their turn in event-time order, each when W > its time; `arrival` (real time, rule R5): as they come.
  * A partial match is the rows it has taken and the edges of the automaton that are still open to it; each row in its
  * turn takes an edge, closes it or passes it by. Time closes edges too. */
package headrace.steps

import java.util.{ArrayList, Comparator, PriorityQueue}

import headrace.Stage

final class Pattern(from: RowStepSpec) extends RowStep[PatternState] {
  private val spec = new PatternSpec(from)
  private val runs = new PatternRuns(spec)
  private val skip = new PatternSkip(spec)
  private val layout = new PatternLayout(spec.columns)
  private val tellsTimeouts = from.ports.contains(Stage.TIMEOUTS)

  def fresh(): PatternState = new PatternState

  /** Holds the row until its turn; late when that has passed (rule P1). By arrival its turn is now, and what it has found
    * comes out at once. A float that is no number is refused where a number is asked for (rule B3). */
  def step(state: PatternState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    if (spec.arrival) {
      if (isNan(row)) return Verdict.NAN
      turn(state, HeldRow.of(row))
      take(state, out)
      return Verdict.HELD
    }
    if (before != Times.NONE && before * Times.MILLI > state.time) state.time = before * Times.MILLI
    if (row.time < state.time) return Verdict.LATE
    if (isNan(row)) return Verdict.NAN
    var at = state.waiting.size
    while (at > 0 && row.compare(state.waiting.get(at - 1)) < 0) at -= 1 // rows mostly come in order
    state.waiting.add(at, HeldRow.of(row))
    Verdict.HELD
  }

  /** Rows that time has passed have their turn, in order; whatever is over between them comes out between them. */
  def onTime(state: PatternState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    if (watermark != Times.NONE) {
      val time = watermark * Times.MILLI
      var due = 0
      while (due < state.waiting.size && state.waiting.get(due).time < time) {
        val row = state.waiting.get(due)
        expire(state, row.time)
        turn(state, row)
        due += 1
      }
      state.waiting.subList(0, due).clear()
      expire(state, time)
      if (!spec.arrival) state.time = time
    }
    take(state, out)
    val used = state.buffer.used
    state.buffer.used = 0
    used
  }

  private def take(state: PatternState, out: ArrayList[Given]): Unit = {
    out.addAll(state.found)
    state.found.clear()
  }

  def due(state: PatternState): Long = {
    var least = if (state.waiting.isEmpty) Times.NEVER else state.waiting.get(0).time + 1
    var i = 0
    while (i < state.runs.size) {
      least = Math.min(least, runs.deadline(state.runs.get(i)))
      i += 1
    }
    if (least == Times.NEVER) least else Times.upToMs(least)
  }

  /** Every partial match meets the row, then the row begins new ones. */
  private def turn(state: PatternState, row: HeldRow): Unit = {
    val kept = state.buffer.keep(row)
    val before = state.runs
    state.runs = new ArrayList[Run](before.size + 1)
    val complete = new ArrayList[Complete]
    before.forEach(run => runs.meet(state, run, kept, complete))
    runs.begin(state, kept, complete)
    complete.sort(Pattern.BY_PATH) // of matches that a row completes, those with earlier rows come first
    state.complete.addAll(complete)
    skip.settle(state)
    skip.refuse(state, row)
    state.buffer.passed(kept)
  }

  /** Closes the edges whose time is up, moment by moment: at each the timeouts, then the matches, by their rows. */
  private def expire(state: PatternState, time: Long): Unit = {
    var moments: PriorityQueue[Expiring] = null // asked for every row, and mostly there is none
    var i = 0
    while (i < state.runs.size) {
      val moment = runs.deadline(state.runs.get(i))
      if (moment <= time) {
        if (moments == null) moments = new PriorityQueue[Expiring](Pattern.BY_MOMENT)
        moments.add(new Expiring(moment, i, state.runs.get(i)))
      }
      i += 1
    }
    if (moments == null) return
    val complete = new ArrayList[Complete]
    val over = new ArrayList[Run]
    while (!moments.isEmpty) {
      val next = moments.poll()
      if (next.run.open.length > 0) { // else a match has taken it with it
        close(state, next.run, next.moment, complete, over)
        val again = runs.deadline(next.run)
        if (again <= time) moments.add(new Expiring(again, next.number, next.run))
      }
      if (moments.isEmpty || moments.peek().moment > next.moment) {
        over.sort(Comparator.comparing[Run, Node](_.node, Pattern.BY_ROWS))
        over.forEach { run =>
          if (!run.matches && tellsTimeouts) state.found.add(skip.told(Stage.TIMEOUTS, "timeout", run.node, next.moment - 1))
          state.buffer.release(run.node)
        }
        complete.sort(Pattern.BY_PATH)
        state.complete.addAll(complete)
        skip.settle(state)
        over.clear()
        complete.clear()
      }
    }
    state.runs.removeIf(_.open.length == 0)
  }

  private def close(state: PatternState, run: Run, moment: Long, complete: ArrayList[Complete], over: ArrayList[Run]): Unit = {
    val before = run.open
    run.open = before.filter(number => runs.closesAt(run, number) > moment)
    val ends = before.exists(number => spec.nfa.edges(number).to == Nfa.END && runs.closesAt(run, number) <= moment)
    if (ends) complete.add(runs.ended(state, run, moment - 1))
    if (run.open.length == 0) over.add(run)
  }

  private def isNan(row: Row): Boolean =
    spec.numbers.exists(at => !row.args.isNullAt(at) && !java.lang.Double.isFinite(row.args.getDouble(at)))

  def write(state: PatternState, out: BlobWriter): Unit = layout.write(state, out)

  def read(in: BlobReader): PatternState = layout.read(in)
}

/** A partial match that time closes edges of; `number`: its place among all. */
final class Expiring(val moment: Long, val number: Int, val run: Run)

object Pattern {
  private val BY_MOMENT: Comparator[Expiring] =
    (one, other) => if (one.moment != other.moment) one.moment.compare(other.moment) else one.number.compare(other.number)

  /** What is found at one moment is told in this order: turns and steps of the rows, one by one. */
  private val BY_ROWS: Comparator[Node] = (one, other) => {
    val (mine, theirs) = (one.path, other.path)
    var i = 0
    var order = 0
    while (order == 0 && i < mine.length && i < theirs.length) {
      order = mine(i).kept.turn.compare(theirs(i).kept.turn)
      if (order == 0) order = mine(i).step.compare(theirs(i).step)
      i += 1
    }
    if (order != 0) order else mine.length.compare(theirs.length)
  }

  private val BY_PATH: Comparator[Complete] = (one, other) => BY_ROWS.compare(one.node, other.node)
}
