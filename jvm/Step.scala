/** A step: a pure state machine over one key. Each mirrors the Python step of the same name, method by method.
  *
  * For one key and one batch the caller
  *  1. calls `step` for its rows, `before` being the watermark W(k-1) in ms (NONE: none yet); then once more for those
  *     judged late, last first: a session that a younger row of the batch opened may take them in,
  *  2. calls `onTime` once, with W(k) and the batch's clock in ms,
  *  3. for keys without rows in the batch, calls `onTime` when `due` <= W(k).
  *
  * `step` gives a verdict on the row; `onTime` adds results to `out` and gives how many held rows were used up. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode

abstract class State {
  def empty: Boolean
  def held: Long
}

abstract class Step[S <: State] {

  /** Whether rows must come in order R2; otherwise only results depend on it, and steps keep order where they do. */
  def ordered: Boolean

  def fresh(): S
  def step(state: S, row: Row, before: Long): Int
  def onTime(state: S, watermark: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Long

  /** The next watermark, in ms, at which `onTime` has something to do, or NEVER. */
  def due(state: S): Long

  def write(state: S, out: BlobWriter): Unit
  def read(in: BlobReader): S
}

object Step {
  final val VERSION = 2 // of the layout of all states and of where they lie; a change of either makes a new one

  /** The step of a spec as Python writes it (`spec.as_json()`).
    * `places`: where each aggregate's argument stands in a row's args (-1: none); `args`: the kinds of the args
    * (null: nobody asks for it); `results`: the kinds of the values; `topics`: the flow's, by source number. */
  def of(spec: JsonNode, places: Array[Int], args: Array[Kind], results: Array[Kind], topics: Array[String]): Step[State] = {
    lazy val tally = new Tally(spec.get("aggregates"), places, args)
    val step = spec.get("step").asText match {
      case "slices" => new Slices(spec, tally, results)
      case "session" => new Sessions(spec, tally, results)
      case "sliding" => new Sliding(spec, tally, args, results, topics)
      case "forever" => new Forever(spec, tally, results)
      case "dedup" => new Dedup(spec)
      case "changed" => new Changed(spec, args)
    }
    step.asInstanceOf[Step[State]]
  }

  /** A state as it is kept: the version, then the step's own layout. */
  def toBytes(step: Step[State], state: State, out: BlobWriter): Array[Byte] = {
    out.clear()
    out.byte(VERSION)
    step.write(state, out)
    out.result()
  }

  def fromBytes(step: Step[State], bytes: Array[Byte]): State = {
    val in = new BlobReader(bytes)
    checkVersion(in.byte())
    step.read(in)
  }

  def checkVersion(version: Int): Unit = if (version != VERSION)
    throw new IllegalStateException(s"[headrace:state-version] state of layout $version, this kernel reads $VERSION")
}
