/** The end of a real-time interval: by the clock, but while twins answer, never of all of them at once.
  *
  * At its end a flow stands still until its state is safe. One of two twins may; one that is alone, because the other was
  * killed or is behind, puts its end off. A twin that keeps up with the log says so by a file of its own, `answering` in
  * its checkpoint's folder: as old as the last second in which it did, taken away when it is stopped in order. One that
  * begins is away, and is soon back; one of which nothing was heard for some intervals is not waited for. */
package headrace

import java.io.IOException
import java.nio.file.{Files, Path}
import java.nio.file.attribute.FileTime
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

/** Of one interval, for all source tasks of a query: they end together, or the rows of one would wait for the others. */
class Ending(interval: Interval, tasks: Int, now: Long) {
  import Ending._

  private val mine = interval.answering.map(Path.of(_))
  @volatile private var end = interval.endAfter(now)
  private val last = end + interval.every
  private val steady = math.min(Steady, interval.every / 4) // or twins with short intervals would never end theirs apart
  private val kept = new Array[Long](tasks) // when each task last kept up
  private var since = now                   // when all of them began to
  private var told = 0L
  private var over = false
  if (!mine.flatMap(heard).exists(_ > now - Away)) tell(now - Away)

  /** How long a task may wait for a record, in ms, before it asks again whether it is over. */
  def patience(now: Long): Long = math.max(0L, math.min(Often, end - now))

  def isOver(now: Long): Boolean = now >= end && synchronized {
    if (!over && now >= end) {
      tell(now - Away) // before the others are asked: of two that would end together each sees that the other is away
      val twins = mine.toSeq.flatMap(others(_, now))
      over = now >= last || twins.isEmpty || twins.exists(fresh(_, now))
      if (!over) { end = math.min(now + Often, last); if (near(told, now, Fresh)) tell(told) } // it answers on
    }
    over
  }

  /** A task has nothing left to read. */
  def keepsUp(task: Int, now: Long): Unit = synchronized {
    kept(task) = now
    since = math.min(since, now) // clocks are set back, too
    if (kept.exists(now - _ > Fresh)) since = now
    else if (!over && now - since >= steady && !near(told, now, Often)) { tell(now); told = now }
  }

  /** When it kept up last; a while ago: it is away. On a full disk it counts as one that is away, and the other waits. */
  private def tell(at: Long): Unit = mine.foreach { mine =>
    try {
      if (!Files.exists(mine)) Files.createFile(mine)
      Files.setLastModifiedTime(mine, FileTime.fromMillis(at))
    } catch { case _: IOException => () }
  }

  /** Of one that was killed long ago, or does not run here any more, nothing is expected. */
  private def others(mine: Path, now: Long): Seq[Path] =
    twinsOf(mine).filter(said => heard(said).exists(now - _ < Forgotten * interval.every + Away))
}

object Ending {
  /** Milliseconds: how often a task looks, and a twin says that it keeps up. */
  val Often = 500L
  /** So long is believed what a twin said. */
  val Fresh = 1500L
  /** So long must it have kept up before it says so: who has just come back is slow at first. */
  val Steady = 5000L
  /** So old a word says that a twin is away; so many intervals later it is forgotten. */
  val Away = 60000L
  val Forgotten = 3
  private val running = new ConcurrentHashMap[String, Ending]

  def begin(run: String, ending: Ending): Unit = running.put(run, ending)
  def forget(run: String): Unit = running.remove(run)

  /** None on an executor of its own: only the driver has it. */
  def of(run: String): Option[Ending] = Option(running.get(run))

  /** What the other twins said last, if they were not stopped: folders of one flow are named `flow`, `flow~2`, ... */
  private def twinsOf(mine: Path): Seq[Path] = {
    def flow(folder: Path) = folder.getFileName.toString.takeWhile(_ != '~')
    val here = mine.getParent
    val folders = Files.list(here.getParent)
    try folders.iterator.asScala.filter(f => f != here && flow(f) == flow(here)).map(_.resolve(mine.getFileName)).filter(Files.exists(_)).toSeq
    finally folders.close()
  }

  private def fresh(said: Path, now: Long): Boolean = heard(said).exists(near(_, now, Fresh))

  private def heard(said: Path): Option[Long] =
    try Some(Files.getLastModifiedTime(said).toMillis) catch { case _: IOException => None } // it has gone

  /** On either side: clocks are set back, too. */
  private def near(at: Long, now: Long, by: Long): Boolean = math.abs(now - at) < by
}
