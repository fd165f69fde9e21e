/** Session windows: rows of a key less than `gap` apart, [first, last + gap) (rule W3).
  *
  * A session is known by its bounds. A row that moves them (it extends a session, or bridges two) makes a new window:
  * what was sent for the old bounds is retracted, and the new ones start again at revision 0. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode

/** Rows from `first` to `last`. */
final class Session(var first: Long, var last: Long, var rows: Long, val states: Array[AnyRef], var sent: Sent)

/** One key. `time`: up to where it has seen time pass, micros. Between batches `retracted` is empty and `changed` (a row
  * came since the last `onTime`) is false. */
final class SessionsState extends State {
  val sessions = new ArrayList[Session](2) // by first; they do not touch
  val retracted = new ArrayList[Result](0)
  var time: Long = Times.NONE
  var changed = false

  def empty: Boolean = sessions.isEmpty

  def held: Long = {
    var total = 0L
    sessions.forEach(session => total += session.rows)
    total
  }
}

/** Times in micros. */
final class Sessions(spec: JsonNode, tally: Tally, results: Array[Kind]) extends Step[SessionsState] {
  private val gap = spec.get("gap").asLong
  private val lateness = spec.get("lateness").asLong
  private val emit = Policy.of(spec.get("emit"))
  private val layout = new SentLayout(results) // a merge takes back what was sent

  /** Which rows are late, and which sessions were sent for a while, depends on it. */
  def ordered: Boolean = true

  def fresh(): SessionsState = new SessionsState

  /** Puts the row into the session that it makes with those it touches. Judged late after that merge: a row that
    * touches a session still held is never late. */
  def step(state: SessionsState, row: Row, before: Long): Int = {
    if (before != Times.NONE && before * Times.MILLI > state.time) state.time = before * Times.MILLI
    val sessions = state.sessions
    var from = 0 // sessions do not touch each other, so those the row touches stand side by side
    while (from < sessions.size && row.time >= sessions.get(from).last + gap) from += 1
    var until = from
    while (until < sessions.size && sessions.get(until).first < row.time + gap) until += 1
    if (from == until) {
      if (state.time != Times.NONE && row.time + gap + lateness <= state.time) return Verdict.LATE
      val reason = tally.refuses(null, row)
      if (reason >= 0) return reason
      sessions.add(from, new Session(row.time, row.time, 0, tally.empty(), new Sent))
    } else {
      val reason = join(state, row, from, until)
      if (reason >= 0) return reason
    }
    val found = sessions.get(from)
    found.rows += 1
    tally.add(found.states, row)
    state.changed = true
    Verdict.HELD
  }

  /** Makes one session of the touched ones and the row's time, or gives the reason why the row is refused. */
  private def join(state: SessionsState, row: Row, from: Int, until: Int): Int = {
    val sessions = state.sessions
    val first = Math.min(row.time, sessions.get(from).first)
    val last = Math.max(row.time, sessions.get(until - 1).last)
    if (until == from + 1) { // the common case: the row lies in a session, or extends it
      val found = sessions.get(from)
      val reason = tally.refuses(found.states, row)
      if (reason >= 0) return reason
      if (found.first != first || found.last != last) {
        takeBack(state, found)
        found.first = first
        found.last = last
        found.sent = new Sent
      }
      return -1
    }
    val states = tally.empty()
    var rows = 0L
    var i = from
    while (i < until) {
      tally.merge(states, sessions.get(i).states)
      rows += sessions.get(i).rows
      i += 1
    }
    val reason = tally.refuses(states, row)
    if (reason >= 0) return reason
    i = from
    while (i < until) {
      takeBack(state, sessions.get(i))
      i += 1
    }
    sessions.subList(from, until).clear()
    sessions.add(from, new Session(first, last, rows, states, new Sent))
    -1
  }

  private def takeBack(state: SessionsState, part: Session): Unit =
    if (part.sent.shown != null) Emission.retract(state.retracted, part.sent, result(part, "", null))

  /** Retractions first, in the order of the merges that caused them; then moves time to the watermark: results by
    * session, and drops the sessions that are gone. */
  def onTime(state: SessionsState, watermark: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Long = {
    val time = if (watermark == Times.NONE) state.time else watermark * Times.MILLI
    out.addAll(state.retracted)
    state.retracted.clear()
    var i = 0
    while (i < state.sessions.size) {
      val session = state.sessions.get(i)
      val closed = time != Times.NONE && session.last + gap <= time
      val kind = Emission.kindDue(emit, session.sent, session.rows, closed, state.changed, clock)
      if (kind != null)
        Emission.send(out, session.sent, result(session, kind, tally.values(session.states)), session.rows, clock, passes)
      i += 1
    }
    state.changed = false
    state.time = time
    var used = 0L
    if (time != Times.NONE) {
      i = state.sessions.size - 1
      while (i >= 0) {
        if (state.sessions.get(i).last + gap + lateness <= time) used += state.sessions.remove(i).rows
        i -= 1
      }
    }
    used
  }

  def due(state: SessionsState): Long = {
    var found = Times.NEVER
    var i = 0
    while (i < state.sessions.size) {
      val session = state.sessions.get(i)
      val end = session.last + gap
      found = Math.min(found, if (session.sent.closed) end + lateness else end)
      i += 1
    }
    if (found == Times.NEVER) Times.NEVER else Times.upToMs(found)
  }

  private def result(session: Session, kind: String, values: Array[Any]): Result = {
    val end = session.last + gap
    val revision = session.sent.revision
    new Result(session.first, end, kind, revision, values, end - 1, s"${session.first}/$end/$revision")
  }

  def write(state: SessionsState, out: BlobWriter): Unit = {
    out.long(state.time)
    out.long(state.sessions.size)
    state.sessions.forEach { session =>
      out.long(session.first)
      out.long(session.last - session.first)
      out.long(session.rows)
      layout.write(session.sent, out)
      tally.write(session.states, out)
    }
  }

  def read(in: BlobReader): SessionsState = {
    val state = new SessionsState
    state.time = in.long()
    var left = in.int()
    while (left > 0) {
      val first = in.long()
      val last = first + in.long()
      val rows = in.long()
      val sent = layout.read(in)
      state.sessions.add(new Session(first, last, rows, tally.read(in), sent))
      left -= 1
    }
    state
  }
}
