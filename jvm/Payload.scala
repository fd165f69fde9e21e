/** Columns packed into one binary and back: rows of every stream share one chain of stages, each with its own columns.
  *
  * The bytes are those of Spark's UnsafeRow, so packing is a copy and unpacking points into them. They live inside one
  * query and its checkpoint, never on the wire. In Spark's package because a Column's expression is private to it. */
package org.apache.spark.sql.headrace

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{CreateNamedStruct, Expression, GetStructField, UnaryExpression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral, GenerateUnsafeProjection}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{BinaryType, DataType, StructType}
import org.apache.spark.unsafe.Platform

import _root_.headrace.WireEncoder

/** A struct's columns as bytes; null only if the struct is. */
case class Pack(child: Expression) extends UnaryExpression {
  override def dataType: DataType = BinaryType
  override def nullable: Boolean = child.nullable
  override def prettyName: String = "pack"

  @transient private lazy val projection = UnsafeProjection.create(child.dataType.asInstanceOf[StructType])

  override protected def nullSafeEval(row: Any): Any = projection(row.asInstanceOf[InternalRow]).copy().getBytes

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = child match {
    case made: CreateNamedStruct => // straight from the columns into bytes, without a row between
      val code = GenerateUnsafeProjection.createCode(ctx, made.valExprs)
      ev.copy(code = code"""${code.code}
        byte[] ${ev.value} = ${code.value}.getBytes();""", isNull = FalseLiteral)
    case other =>
      val fields = other.dataType.asInstanceOf[StructType].indices.map(GetStructField(other, _))
      val struct = other.genCode(ctx)
      val code = GenerateUnsafeProjection.createCode(ctx, fields)
      ev.copy(code = code"""${struct.code}
        boolean ${ev.isNull} = ${struct.isNull};
        byte[] ${ev.value} = null;
        if (!${ev.isNull}) { ${code.code}
          ${ev.value} = ${code.value}.getBytes(); }""")
  }

  override protected def withNewChildInternal(newChild: Expression): Pack = copy(child = newChild)
}

/** Packed bytes as a struct again. The struct is valid until the next row, as rows in Spark are. */
case class Unpack(child: Expression, schema: StructType) extends UnaryExpression {
  override def dataType: DataType = schema
  override def nullable: Boolean = child.nullable
  override def prettyName: String = "unpack"

  @transient private lazy val row = new UnsafeRow(schema.length)

  override protected def nullSafeEval(bytes: Any): Any = {
    val packed = bytes.asInstanceOf[Array[Byte]]
    row.pointTo(packed, Platform.BYTE_ARRAY_OFFSET, packed.length)
    row
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val kind = classOf[UnsafeRow].getName
    val row = ctx.addMutableState(kind, "unpacked", v => s"$v = new $kind(${schema.length});")
    nullSafeCodeGen(ctx, ev, bytes => s"""
      $row.pointTo($bytes, ${Platform.BYTE_ARRAY_OFFSET}, $bytes.length);
      ${ev.value} = $row;""")
  }

  override protected def withNewChildInternal(newChild: Expression): Unpack = copy(child = newChild)
}

/** A struct as the JSON object of rule F1. */
case class Encode(child: Expression) extends Written {
  override def prettyName: String = "encode"
  override protected def method: String = "encode"
  override protected def nullSafeEval(row: Any): Any = encoder.encode(row.asInstanceOf[InternalRow])
  override protected def withNewChildInternal(newChild: Expression): Encode = copy(child = newChild)
}

/** A struct as a record key of rule F1; null if its only column is. */
case class KeyText(child: Expression) extends Written {
  override def nullable: Boolean = true
  override def prettyName: String = "keyText"
  override protected def method: String = "key"
  override protected def nullSafeEval(row: Any): Any = encoder.key(row.asInstanceOf[InternalRow])
  override protected def withNewChildInternal(newChild: Expression): KeyText = copy(child = newChild)
}

/** What Encode and KeyText share: a writer per task, since it reuses its buffer. */
abstract class Written extends UnaryExpression {
  override def dataType: DataType = BinaryType
  override def nullable: Boolean = child.nullable
  protected def method: String

  @transient protected lazy val encoder = new WireEncoder(child.dataType.asInstanceOf[StructType])

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val kind = classOf[WireEncoder].getName
    val schema = ctx.addReferenceObj("schema", child.dataType, classOf[StructType].getName)
    val writer = ctx.addMutableState(kind, "writer", v => s"$v = new $kind($schema);")
    nullSafeCodeGen(ctx, ev, row => s"""
      ${ev.value} = $writer.$method($row);
      ${if (nullable) s"${ev.isNull} = ${ev.value} == null;" else ""}""")
  }
}
