/** Blobs: the compact bytes that state is kept in; whole numbers take as few bytes as they need. */
package headrace.steps

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

final class BlobWriter {
  private var bytes = new Array[Byte](256)
  private var filled = 0

  def size: Int = filled

  def clear(): Unit = filled = 0

  def result(): Array[Byte] = Arrays.copyOf(bytes, filled)

  def byte(value: Int): Unit = {
    room(1)
    bytes(filled) = value.toByte
    filled += 1
  }

  def bool(value: Boolean): Unit = byte(if (value) 1 else 0)

  /** A whole number near zero, of either sign: zigzag, then seven bits a byte. */
  def long(value: Long): Unit = {
    room(10)
    var rest = (value << 1) ^ (value >> 63)
    while ((rest & ~0x7fL) != 0) {
      bytes(filled) = ((rest & 0x7f) | 0x80).toByte
      filled += 1
      rest >>>= 7
    }
    bytes(filled) = rest.toByte
    filled += 1
  }

  /** Eight bytes, whatever the value: for floats and times without a base to count from. */
  def fixed(value: Long): Unit = {
    room(8)
    var shift = 56
    while (shift >= 0) {
      bytes(filled) = (value >>> shift).toByte
      filled += 1
      shift -= 8
    }
  }

  def double(value: Double): Unit = fixed(java.lang.Double.doubleToRawLongBits(value))

  def binary(value: Array[Byte]): Unit = {
    long(value.length)
    raw(value, 0, value.length)
  }

  /** Bytes of another blob, as they stand there. */
  def raw(value: Array[Byte], from: Int, length: Int): Unit = {
    room(length)
    System.arraycopy(value, from, bytes, filled, length)
    filled += length
  }

  def binaryOrNull(value: Array[Byte]): Unit = if (value == null) long(-1) else binary(value)

  def text(value: String): Unit = binary(value.getBytes(UTF_8))

  private def room(wanted: Int): Unit =
    if (filled + wanted > bytes.length) bytes = Arrays.copyOf(bytes, Math.max(filled + wanted, bytes.length * 2))
}

final class BlobReader(val bytes: Array[Byte], private var at: Int = 0) {

  def atEnd: Boolean = at == bytes.length

  def position: Int = at

  def skip(length: Int): Unit = at += length

  def byte(): Int = {
    val value = bytes(at)
    at += 1
    value & 0xff
  }

  def bool(): Boolean = byte() == 1

  def long(): Long = {
    var shift = 0
    var value = 0L
    var more = true
    while (more) {
      val next = bytes(at)
      at += 1
      value |= (next & 0x7fL) << shift
      shift += 7
      more = next < 0
    }
    (value >>> 1) ^ -(value & 1)
  }

  def int(): Int = Math.toIntExact(long())

  def fixed(): Long = {
    var value = 0L
    val end = at + 8
    while (at < end) {
      value = (value << 8) | (bytes(at) & 0xff)
      at += 1
    }
    value
  }

  def double(): Double = java.lang.Double.longBitsToDouble(fixed())

  def binary(): Array[Byte] = take(int())

  def binaryOrNull(): Array[Byte] = {
    val length = int()
    if (length < 0) null else take(length)
  }

  def text(): String = new String(binary(), UTF_8)

  private def take(length: Int): Array[Byte] = {
    at += length
    Arrays.copyOfRange(bytes, at - length, at)
  }
}
