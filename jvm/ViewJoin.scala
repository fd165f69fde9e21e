/** A view of two tables: left rows joined to the right row whose primary key they point to (rule J5).
  *
  * This is the step by foreign key: it learns of links and of the right row, and gives answers, each under the left row's
  * primary key. The other two are the links, made on the way in, and Settling. Time says nothing to a view. */
package headrace.steps

import java.util.ArrayList

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

/** One foreign key: the right row that has it as primary key, and the left rows that point to it, by their key. */
final class ViewJoinState(var right: Array[Byte], var version: Long, val links: Links) extends State {
  def empty: Boolean = right == null && links.isEmpty
  def held: Long = 0 // what was learned is remembered, and used when it came
}

final class ViewJoin extends RowStep[ViewJoinState] {
  import ViewJoin._

  def fresh(): ViewJoinState = new ViewJoinState(null, Change.NO_VERSION, Links.empty(chunks))

  def step(state: ViewJoinState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    if (input == LINKS) link(state, row, out) else learn(state, row, out)
    Verdict.USED
  }

  /** A left row points here, has changed, or has gone; of one that has gone, others answer. */
  private def link(state: ViewJoinState, row: Row, out: ArrayList[Given]): Unit = {
    val (key, values) = (row.args.getBinary(0), Change.binary(row.args, 2))
    if (values == null) state.links.remove(key)
    else {
      val link = new Link(key, row.args.getLong(1), values)
      state.links.put(link)
      out.add(answer(state, link, row))
    }
  }

  /** The right row has changed: every left row that points to it is answered anew. Its version grows here even if its
    * table has forgotten a deletion: an answer from before the change must not stand against one after it. */
  private def learn(state: ViewJoinState, row: Row, out: ArrayList[Given]): Unit = {
    state.right = Change.binary(row.args, Change.AFTER)
    state.version = Math.max(row.args.getLong(Change.VERSION), state.version + 1)
    state.links.all.forEach(link => out.add(answer(state, link, row)))
  }

  /** It has the place of what it answers: only the view's own changes have names of their own. */
  private def answer(state: ViewJoinState, link: Link, row: Row): Given = {
    val values = new GenericInternalRow(Array[Any](link.version, state.version, link.values, state.right))
    new Given(0, Math.max(link.version, state.version), values, row, "", link.key)
  }

  def onTime(state: ViewJoinState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    state.links.close()
    0
  }

  def due(state: ViewJoinState): Long = Times.NEVER

  def write(state: ViewJoinState, out: BlobWriter): Unit = {
    out.binaryOrNull(state.right)
    out.long(state.version)
    state.links.write(out)
  }

  def read(in: BlobReader): ViewJoinState = new ViewJoinState(in.binaryOrNull(), in.long(), Links.read(chunks, in))
}

object ViewJoin {
  final val LINKS = 0 // key, version, values (null: it points here no more)
  final val CHANGES = 1 // of the right table
}
