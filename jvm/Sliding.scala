/** Sliding windows: per row one result over (t - size, t], the rows before it in order R2 and itself (rule W2).
  *
  * A result comes out once, when W > t. A row that comes behind it within lateness corrects the results it belongs to.
  * Written half-open the window is [t - size + 1 us, t + 1 us): so it closes at W > t, is gone at W > t + lateness, and
  * the result's time is t. The result says `window_start` = t - size, `window_end` = t. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

/** A row, and what its window has sent. `stale`: a row came behind it since its last result. */
final class Held(val row: Row, val sent: Sent) {
  var stale = false
}

/** One key. `time`: up to where it has seen time pass, micros. */
final class SlidingState extends State {
  val rows = new ArrayList[Held] // in order R2
  var time: Long = Times.NONE

  def empty: Boolean = rows.isEmpty
  def held: Long = rows.size
}

/** Times in micros. */
final class Sliding(spec: JsonNode, tally: Tally, args: Array[Kind], results: Array[Kind], topics: Array[String])
    extends Step[SlidingState] {
  private val size = spec.get("size").asLong
  private val lateness = spec.get("lateness").asLong
  private val layout = new SentLayout(if (spec.get("having").asBoolean) results else null)

  def ordered: Boolean = false // rows are put where they belong

  def fresh(): SlidingState = new SlidingState

  /** Holds the row; results already sent that it belongs to become stale. Late when its own window is gone. */
  def step(state: SlidingState, row: Row, before: Long): Int = {
    if (before != Times.NONE && before * Times.MILLI > state.time) state.time = before * Times.MILLI
    if (state.time != Times.NONE && row.time + lateness < state.time) return Verdict.LATE
    val reason = tally.refuses(null, row)
    if (reason >= 0) return reason
    var at = state.rows.size
    while (at > 0 && row.compare(state.rows.get(at - 1).row) < 0) at -= 1 // rows mostly come in order
    state.rows.add(at, new Held(kept(row), new Sent))
    var i = at + 1
    while (i < state.rows.size && state.rows.get(i).row.time < row.time + size) {
      val after = state.rows.get(i)
      if (after.sent.closed && !gone(after, state.time)) after.stale = true
      i += 1
    }
    Verdict.HELD
  }

  /** Results in order R2: finals of the rows that time passes, corrections of stale ones; then drops the rows that no
    * window can reach any more. */
  def onTime(state: SlidingState, watermark: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Long = {
    val time = if (watermark == Times.NONE) state.time else watermark * Times.MILLI
    if (time != Times.NONE) sendDue(state, time, clock, passes, out)
    state.time = time
    drop(state)
  }

  def due(state: SlidingState): Long = {
    if (state.rows.isEmpty) return Times.NEVER
    val gone = state.rows.get(0).row.time + size + lateness
    var i = 0
    while (i < state.rows.size) {
      val held = state.rows.get(i)
      if (!held.sent.closed) return Times.upToMs(Math.min(held.row.time + 1, gone))
      i += 1
    }
    Times.upToMs(gone)
  }

  /** Walks once over the rows around those that are due. */
  private def sendDue(state: SlidingState, time: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Unit = {
    val rows = state.rows
    var first = 0
    while (first < rows.size && !isDue(rows.get(first), time)) first += 1
    if (first == rows.size) return
    var last = rows.size - 1
    while (!isDue(rows.get(last), time)) last -= 1
    val running = new Running(tally)
    val reach = rows.get(first).row.time - size
    var i = 0
    while (rows.get(i).row.time <= reach) i += 1
    while (i <= last) {
      val held = rows.get(i)
      val t = held.row.time
      running.enter(held.row)
      running.leave(t - size)
      if (isDue(held, time)) {
        val sent = held.sent
        val kind = if (sent.closed) Emission.CORRECTION else Emission.FINAL
        val result = new Result(t - size, t, kind, sent.revision, running.values(), t, s"${Cause.of(held.row, topics)}/${sent.revision}")
        Emission.send(out, sent, result, running.rows, clock, passes)
        held.stale = false
      }
      i += 1
    }
  }

  private def isDue(held: Held, time: Long): Boolean = held.stale || (!held.sent.closed && held.row.time < time)

  private def gone(held: Held, time: Long): Boolean = time != Times.NONE && held.row.time + lateness < time

  /** A row that can still come is not older than time - lateness, and looks back `size`. */
  private def drop(state: SlidingState): Long = {
    if (state.time == Times.NONE) return 0
    var used = 0
    while (used < state.rows.size && state.rows.get(used).row.time + size + lateness <= state.time) used += 1
    state.rows.subList(0, used).clear()
    used
  }

  /** The row free of the memory it came in. */
  private def kept(row: Row): Row = {
    val own = place(row.time, row.src, row.part, row.off, row.id)
    own.args = new GenericInternalRow(Array.tabulate[Any](args.length)(i => if (args(i) == null) null else args(i).nullable(row.args, i)))
    own
  }

  private def place(time: Long, src: Int, part: Int, off: Long, id: Array[Byte]): Row = {
    val row = new Row
    row.time = time
    row.src = src
    row.part = part
    row.off = off
    row.id = id
    row
  }

  /** Times are counted each from the row before it. */
  def write(state: SlidingState, out: BlobWriter): Unit = {
    out.long(state.time)
    out.long(state.rows.size)
    var last = 0L
    var i = 0
    while (i < state.rows.size) {
      val held = state.rows.get(i)
      val row = held.row
      out.long(row.time - last)
      last = row.time
      out.long(row.src)
      out.long(row.part)
      out.long(row.off)
      out.binary(row.id)
      layout.write(held.sent, out)
      var arg = 0
      while (arg < args.length) {
        if (args(arg) != null) args(arg).writeNullable(row.args.asInstanceOf[GenericInternalRow].values(arg), out)
        arg += 1
      }
      i += 1
    }
  }

  def read(in: BlobReader): SlidingState = {
    val state = new SlidingState
    state.time = in.long()
    var left = in.int()
    var last = 0L
    while (left > 0) {
      last += in.long()
      val row = place(last, in.int(), in.int(), in.long(), in.binary())
      val sent = layout.read(in)
      row.args = new GenericInternalRow(Array.tabulate[Any](args.length)(i => if (args(i) == null) null else args(i).readNullable(in)))
      state.rows.add(new Held(row, sent))
      left -= 1
    }
    state
  }
}
