/** The chain's expressions as columns, for callers outside Spark's package. */
package org.apache.spark.sql.headrace

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.ExpressionUtils
import org.apache.spark.sql.types.StructType

object ChainColumns {
  def of(make: Expression => Expression, column: Column): Column =
    ExpressionUtils.column(make(ExpressionUtils.expression(column)))

  def pack(struct: Column): Column = of(Pack(_), struct)

  def unpack(bytes: Column, ddl: String): Column = of(Unpack(_, StructType.fromDDL(ddl)), bytes)

  def encode(struct: Column): Column = of(Encode(_), struct)

  def keyText(struct: Column): Column = of(KeyText(_), struct)

  def decide(payload: Column, place: String, default: String, row: String, said: String): Column =
    of(Decide(_, place, default, StructType.fromDDL(row), StructType.fromDDL(said)), payload)

  def stableId(row: Column, named: String): Column = {
    val o = new ObjectMapper().readTree(named)
    val topics = o.get(3).elements.asScala.map(_.asText).toSeq
    of(StableId(_, o.get(0).asText, o.get(1).asText, o.get(2).asText, topics), row)
  }
}
