/** HyperLogLog with 4,096 registers: how many different values, within about 1.6 % (one standard error).
  *
  * The hash has a name, because both engines must agree on it: FNV-1a over the bytes, then splitmix64's finaliser,
  * both 64 bits. FNV alone mixes its high bits badly, and the high bits choose the register. */
package headrace.steps

final class Hll {
  import Hll._

  private val registers = new Array[Byte](M)
  private var used = 0

  def add(hashed: Long): Unit = {
    val register = (hashed >>> Q).toInt
    val rest = hashed & ((1L << Q) - 1)
    raise(register, Q - (64 - java.lang.Long.numberOfLeadingZeros(rest)) + 1)
  }

  def merge(other: Hll): Unit = {
    var register = 0
    while (register < M) {
      raise(register, other.registers(register))
      register += 1
    }
  }

  /** Ertl's improved raw estimator (2017): right for few and many values alike, without tables of corrections. */
  def estimate: Long = {
    val counts = new Array[Int](Q + 2)
    registers.foreach(rank => counts(rank) += 1)
    var z = M * tau(1.0 - counts(Q + 1).toDouble / M)
    var rank = Q
    while (rank > 0) {
      z = 0.5 * (z + counts(rank))
      rank -= 1
    }
    z += M * sigma(counts(0).toDouble / M)
    if (z.isInfinite) 0 else Math.floor(ALPHA * M * M / z + 0.5).toLong
  }

  /** Few registers in use: their numbers and ranks; many: all ranks. */
  def write(out: BlobWriter): Unit = {
    val sparse = used < M / 3
    out.bool(sparse)
    if (sparse) {
      out.long(used)
      var register = 0
      var last = 0
      while (register < M) {
        if (registers(register) != 0) {
          out.long(register - last)
          out.byte(registers(register))
          last = register
        }
        register += 1
      }
    } else registers.foreach(rank => out.byte(rank))
  }

  def read(in: BlobReader): this.type = {
    if (in.bool()) {
      var left = in.int()
      var register = 0
      while (left > 0) {
        register += in.int()
        raise(register, in.byte())
        left -= 1
      }
    } else {
      var register = 0
      while (register < M) {
        raise(register, in.byte())
        register += 1
      }
    }
    this
  }

  private def raise(register: Int, rank: Int): Unit =
    if (rank > registers(register)) {
      if (registers(register) == 0) used += 1
      registers(register) = rank.toByte
    }
}

object Hll {
  private val P = 12
  private val M = 1 << P
  private val Q = 64 - P // bits left for the rank; a rank is 1 .. Q + 1
  private val ALPHA = 0.5 / Math.log(2.0)

  /** FNV-1a 64, then splitmix64's finaliser. */
  def hash64(data: Array[Byte]): Long = {
    var h = 0xcbf29ce484222325L
    var i = 0
    while (i < data.length) {
      h = (h ^ (data(i) & 0xff)) * 0x100000001b3L
      i += 1
    }
    h = (h ^ (h >>> 30)) * 0xbf58476d1ce4e5b9L
    h = (h ^ (h >>> 27)) * 0x94d049bb133111ebL
    h ^ (h >>> 31)
  }

  private def sigma(start: Double): Double = {
    if (start == 1.0) return Double.PositiveInfinity
    var x = start
    var y = 1.0
    var z = x
    var before = Double.NaN
    while (z != before) {
      x *= x
      before = z
      z += x * y
      y += y
    }
    z
  }

  private def tau(start: Double): Double = {
    if (start == 0.0 || start == 1.0) return 0.0
    var x = start
    var y = 1.0
    var z = 1.0 - x
    var before = Double.NaN
    while (z != before) {
      x = Math.sqrt(x)
      before = z
      y *= 0.5
      z -= (1.0 - x) * (1.0 - x) * y
    }
    z / 3.0
  }
}
