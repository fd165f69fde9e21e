/** Packs the rows that a step gives into payloads. Two packed rows side by side are copied, whatever their columns. */
package headrace

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, InterpretedUnsafeProjection, JoinedRow, UnsafeRow}
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

final class Packing(types: Array[DataType]) {
  // Interpreted: a step is made for every task, and generating code for it would cost more than its rows.
  private lazy val projection = InterpretedUnsafeProjection.createProjection(
    types.indices.map(i => BoundReference(i, types(i), nullable = true)))
  private val apart = types.map(!UnsafeRow.isFixedLength(_)) // columns that lie behind the others, where their word points
  private val nulls = UnsafeRow.calculateBitSetWidthInBytes(types.length)

  /** Always a copy: rows are the step's, and the projection writes the next one into the same bytes. */
  def pack(row: InternalRow): Array[Byte] = row match {
    case whole: UnsafeRow => whole.copy().getBytes
    case both: JoinedRow => (both.getLeft, both.getRight) match {
      case (left: UnsafeRow, right: UnsafeRow) => together(left, right)
      case _ => projection(row).copy().getBytes
    }
    case _ => projection(row).copy().getBytes
  }

  /** The null bits of both, the words of both, then what lies apart of both. */
  private def together(left: UnsafeRow, right: UnsafeRow): Array[Byte] = {
    val bytes = new Array[Byte](nulls + 8 * types.length + sizeApart(left) + sizeApart(right))
    val made = new UnsafeRow(types.length)
    made.pointTo(bytes, bytes.length)
    val end = copy(left, made, 0, nulls + 8 * types.length)
    copy(right, made, left.numFields, end)
    bytes
  }

  private def sizeApart(row: UnsafeRow): Int = row.getSizeInBytes - widthOf(row)

  private def widthOf(row: UnsafeRow): Int = UnsafeRow.calculateBitSetWidthInBytes(row.numFields) + 8 * row.numFields

  /** A row's columns from `first` on, what lies apart from the byte `to` on; gives where that ends. */
  private def copy(row: UnsafeRow, made: UnsafeRow, first: Int, to: Int): Int = {
    val moved = (to - widthOf(row)).toLong << 32 // a word is the offset from the row's start, then the size
    var i = 0
    while (i < row.numFields) {
      if (row.isNullAt(i)) made.setNullAt(first + i)
      else {
        val word = row.getLong(i)
        made.setLong(first + i, if (apart(first + i)) word + moved else word)
      }
      i += 1
    }
    Platform.copyMemory(row.getBaseObject, row.getBaseOffset + widthOf(row), made.getBaseObject, made.getBaseOffset + to, sizeApart(row))
    to + sizeApart(row)
  }
}
