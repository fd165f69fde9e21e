/** Settle: of a batch's answers for an output key of a view, the one of the greatest cause makes the change (rule J5). */
package headrace.steps

import java.util.ArrayList

/** One output key. `answered`, `left`, `right` and `values`: the greatest answer of this batch; none between batches. */
final class SettlingState(val told: Told) extends State {
  var answered = false
  var left = Change.NO_VERSION
  var right = Change.NO_VERSION
  var values: Array[Byte] = _

  def empty: Boolean = told.empty
  def held: Long = 0
}

final class Settling(spec: RowStepSpec) extends RowStep[SettlingState] {
  private val keep = spec.json.get("keep").asLong // how long the version of a deleted key is remembered, micros of event time

  def fresh(): SettlingState = new SettlingState(new Told)

  def step(state: SettlingState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    val (left, right) = (row.args.getLong(0), row.args.getLong(1))
    if (!state.answered || left > state.left || (left == state.left && right > state.right)) {
      state.answered = true
      state.left = left
      state.right = right
      state.values = Change.binary(row.args, 2)
    }
    Verdict.USED
  }

  /** The batch's net change; then forgets a deleted key whose time is up. */
  def onTime(state: SettlingState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    if (state.answered) {
      state.told.tell(state.values, Math.max(state.left, state.right), out)
      state.answered = false
    }
    state.told.forget(keep, watermark)
    0
  }

  def due(state: SettlingState): Long = state.told.due(keep)

  def write(state: SettlingState, out: BlobWriter): Unit = state.told.write(out)

  def read(in: BlobReader): SettlingState = new SettlingState(Told.read(in))
}
