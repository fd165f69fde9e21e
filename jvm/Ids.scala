/** Stable ids: the same cause always gets the same 128-bit name (rule D2); mirrors `headrace.base.ids`. */
package headrace

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

object Ids {
  /** Bytes of an id. A chain row's `id` of another length is text that a flat map added to its row's place. */
  val Length = 16
  private val digests = ThreadLocal.withInitial(() => MessageDigest.getInstance("MD5")) // finding one costs more than using it
  private val digits = "0123456789abcdef".getBytes(UTF_8)

  /** MD5 over the parts, each with its length before it, so that ("ab", "c") differs from ("a", "bc"). */
  def stable(parts: String*): Array[Byte] = {
    val digest = digests.get
    val size = ByteBuffer.allocate(4)
    parts.foreach { part =>
      val raw = part.getBytes(UTF_8)
      size.clear()
      digest.update(size.putInt(raw.length).array)
      digest.update(raw)
    }
    digest.digest()
  }

  def hex(id: Array[Byte]): String = {
    val text = new Array[Byte](id.length * 2)
    var i = 0
    while (i < id.length) {
      text(2 * i) = digits((id(i) >> 4) & 15)
      text(2 * i + 1) = digits(id(i) & 15)
      i += 1
    }
    new String(text, UTF_8)
  }

  /** What a row was caused by: its place in the log, or what a flat map wrote into `id`. The n-th row it made of one has
    * "/00000n" behind the id of that row (none for a row of the log), and "/n" behind its cause. A row that a step made has no
    * place in the log: it is not asked for then. */
  def cause(place: => String, id: Array[Byte]): String =
    if (id == null) place
    else {
      val parts = new String(id, UTF_8).split('/')
      val origin = if (parts.head.isEmpty) place else parts.head
      origin + parts.tail.map(n => s"/${n.toLong}").mkString
    }
}
