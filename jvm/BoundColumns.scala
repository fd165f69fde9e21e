/** Columns over a schema as expressions that can be asked of rows one by one. */
package org.apache.spark.sql.headrace

import java.util.{List => JavaList}

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Column, Row}
import org.apache.spark.sql.catalyst.expressions.{Alias, BindReferences, Expression}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

object BoundColumns {
  /** `row`: the schema as DDL. */
  def of(row: String, columns: JavaList[Column]): Seq[Expression] = apply(SparkSession.active, StructType.fromDDL(row), columns)

  def apply(session: SparkSession, schema: StructType, columns: JavaList[Column]): Seq[Expression] = {
    // Of an RDD, since a local relation without rows would be optimised away with all that is asked of it.
    val rows = session.createDataFrame(session.sparkContext.emptyRDD[Row]: RDD[Row], schema)
    val named = columns.asScala.zipWithIndex.map { case (column, i) => column.as(s"asked_$i") }.toSeq
    val optimized = rows.select(named: _*).queryExecution.optimizedPlan.expressions
    BindReferences.bindReferences(optimized.map { case Alias(asked, _) => asked }, rows.queryExecution.analyzed.output)
  }
}
