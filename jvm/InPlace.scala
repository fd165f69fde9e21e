/** Generated code for binary columns that are read once and dropped: their bytes stay where they lie, without an array of
  * their own. */
package org.apache.spark.sql.headrace

import org.apache.spark.sql.catalyst.expressions.{CaseWhen, Cast, CreateNamedStruct, Expression, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral, GenerateUnsafeProjection, JavaCode}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{BinaryType, StringType}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

object InPlace {
  /** The bytes as a UTF8String, whether they are a text or not; null if there are none. */
  def text(ctx: CodegenContext, binary: Expression): ExprCode = variable(ctx, classOf[UTF8String]) { found =>
    chosen(ctx, binary) { end =>
      val text = textOf(end)
      val made = text.getOrElse(end).genCode(ctx)
      val value = if (text.isEmpty) s"UTF8String.fromBytes(${made.value})" else made.value.toString
      s"${made.code} if (!${made.isNull}) $found = $value;"
    }
  }

  /** The text whose bytes these are. */
  private def textOf(binary: Expression): Option[Expression] = Some(binary).collect {
    case Cast(text, BinaryType, _, _) => text
    case KeyText(made: CreateNamedStruct) if made.valExprs.size == 1 => made.valExprs.head
  }.filter(_.dataType.isInstanceOf[StringType])

  /** Packed bytes as a row without columns; null if there are none. */
  def row(ctx: CodegenContext, binary: Expression): ExprCode = variable(ctx, classOf[UnsafeRow]) { found =>
    lazy val view = ctx.addMutableState("UnsafeRow", "packed", v => s"$v = new UnsafeRow(0);")
    chosen(ctx, binary) {
      case Pack(made: CreateNamedStruct) =>
        val row = GenerateUnsafeProjection.createCode(ctx, made.valExprs)
        s"${row.code} $found = ${row.value};"
      case other =>
        val made = other.genCode(ctx)
        s"""${made.code} if (!${made.isNull}) {
          $view.pointTo(${made.value}, ${Platform.BYTE_ARRAY_OFFSET}, ${made.value}.length);
          $found = $view;
        }"""
    }
  }

  private def variable(ctx: CodegenContext, kind: Class[_])(code: String => String): ExprCode = {
    val found = ctx.freshName("found")
    ExprCode(code"${kind.getSimpleName} $found = null; ${code(found)}", FalseLiteral, JavaCode.variable(found, kind))
  }

  /** The code of whichever end of a CASE it comes to. */
  private def chosen(ctx: CodegenContext, value: Expression)(code: Expression => String): String = value match {
    case CaseWhen(branches, otherwise) =>
      branches.foldRight(otherwise.map(chosen(ctx, _)(code)).getOrElse("")) { case ((condition, end), rest) =>
        val asked = condition.genCode(ctx)
        s"${asked.code} if (!${asked.isNull} && ${asked.value}) { ${chosen(ctx, end)(code)} } else { $rest }"
      }
    case end => code(end)
  }
}
