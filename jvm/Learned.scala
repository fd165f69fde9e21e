/** What the tasks of a batch tell the driver: per partition, up to where they read, the greatest time, when they saw it. */
package headrace

import org.apache.spark.util.AccumulatorV2

case class Lesson(place: Place, next: Long, top: Long, seen: Long)

/** Only maxima, so that a task that runs twice does no harm. */
class Learned extends AccumulatorV2[Lesson, Map[Place, Lesson]] {
  private var lessons = Map.empty[Place, Lesson]

  override def isZero: Boolean = synchronized(lessons.isEmpty)
  override def copy(): Learned = { val other = new Learned; other.lessons = value; other }
  override def reset(): Unit = synchronized { lessons = Map.empty }
  override def value: Map[Place, Lesson] = synchronized(lessons)
  override def merge(other: AccumulatorV2[Lesson, Map[Place, Lesson]]): Unit = other.value.values.foreach(add)

  override def add(l: Lesson): Unit = synchronized {
    lessons = lessons.updatedWith(l.place) {
      case Some(k) => Some(Lesson(l.place, math.max(k.next, l.next), math.max(k.top, l.top), math.max(k.seen, l.seen)))
      case None => Some(l)
    }
  }
}
