/** Emission: which results of a window come out, and when (rule W5).
  *
  *  - A `final` comes once, with the first result at or after the close, under every policy; later ones are
  *    `correction`s.
  *  - `on_change`: an `early` result for every batch in which the open window got a row; if the batch also closes the
  *    window, only the final comes out.
  *  - `early`: the same, but not sooner than `early` after the last one by the batch's clock; the first comes at once.
  *    Only a batch with a row of the key asks, since a clock that nobody looks at moves nothing.
  *  - A window has changed when it got a row since its last result, even if the row left the values as they were.
  *  - `having` is asked of every result. One that fails is not sent; if the window's last result was sent, a
  *    `retraction` takes it back, with the values that were sent. What is not sent does not count as a revision. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode

/** The `having` condition, over a result. */
trait Passes {
  def apply(result: Result): Boolean
}

/** `onChange`; else at close, with early results every `early` ms (0: none). */
final class Policy(val onChange: Boolean, val early: Long) {
  val beforeClose: Boolean = onChange || early > 0
}

object Policy {
  def of(spec: JsonNode): Policy = new Policy(spec.get("on_change").asBoolean, spec.get("early").asLong)
}

/** What a window has told so far. Only sessions and `having` ask for `shown`; it is kept only there. */
final class Sent {
  var revision = 0L // of the next result
  var rows = 0L // how many rows the last result was made of
  var closed = false // the final result has come
  var earlyAt = Times.NONE // clock of the last early result
  var shown: Array[Any] = _ // values of the last result, while it stands
}

object Emission {
  final val EARLY = "early"
  final val FINAL = "final"
  final val CORRECTION = "correction"
  final val RETRACTION = "retraction"

  /** The kind of result that is due for a window of so many rows, or null. `touched`: the batch has a row of the key. */
  def kindDue(policy: Policy, sent: Sent, rows: Long, closed: Boolean, touched: Boolean, clock: Long): String =
    if (closed && !sent.closed) FINAL
    else if (rows == sent.rows) null
    else if (closed) CORRECTION
    else if (!touched) null
    else if (policy.onChange) EARLY
    else if (policy.early > 0 && (sent.earlyAt == Times.NONE || clock - sent.earlyAt >= policy.early)) EARLY
    else null

  /** Adds the result to `out`, or what `having` makes of it. */
  def send(out: ArrayList[Result], sent: Sent, result: Result, rows: Long, clock: Long, passes: Passes): Unit = {
    sent.rows = rows
    if (result.kind == EARLY) sent.earlyAt = clock else sent.closed = true
    if (passes == null || passes(result)) {
      out.add(result)
      sent.revision += 1
      sent.shown = result.values
    } else retract(out, sent, result)
  }

  /** Takes back what was sent for `result`'s window, if it stands. `result.cause` ends in the next revision. */
  def retract(out: ArrayList[Result], sent: Sent, result: Result): Unit = if (sent.shown != null) {
    out.add(new Result(result.start, result.end, RETRACTION, result.revision, sent.shown, result.time, result.cause))
    sent.revision += 1
    sent.shown = null
  }
}

/** How what was sent is kept. `results`: the kinds of the values, if they can be asked for again; else null. */
final class SentLayout(results: Array[Kind]) {

  def write(sent: Sent, out: BlobWriter): Unit = {
    val shown = results != null && sent.shown != null
    val early = sent.earlyAt != Times.NONE
    out.byte((if (sent.closed) 1 else 0) | (if (early) 2 else 0) | (if (shown) 4 else 0))
    out.long(sent.revision)
    out.long(sent.rows)
    if (early) out.long(sent.earlyAt)
    if (shown) {
      var i = 0
      while (i < results.length) {
        results(i).writeNullable(sent.shown(i), out)
        i += 1
      }
    }
  }

  def read(in: BlobReader): Sent = {
    val sent = new Sent
    val flags = in.byte()
    sent.closed = (flags & 1) != 0
    sent.revision = in.long()
    sent.rows = in.long()
    if ((flags & 2) != 0) sent.earlyAt = in.long()
    if ((flags & 4) != 0) sent.shown = Array.tabulate[Any](results.length)(i => results(i).readNullable(in))
    sent
  }
}
