/** What Spark need not do again and again: a stream's plan is optimized anew for every batch, by some hundred rules, most
  * of them for things that our plans never hold (joins, aggregates, subqueries, files). At small batches that took longer
  * than the rows. */
package org.apache.spark.sql.headrace

import org.apache.spark.sql.classic.SparkSession

object Planning {
  private val Excluded = "spark.sql.optimizer.excludedRules"
  private val Optimizer = "org.apache.spark.sql.catalyst.optimizer."
  /** Those that our plans get something out of. */
  private val Useful = Set("BooleanSimplification", "CollapseProject", "ColumnPruning", "ConstantFolding", "LikeSimplification",
    "OptimizeIn", "PushDownPredicates", "RemoveNoopOperators", "SimplifyCasts", "SimplifyExtractValueOps")

  /** Leaves only the useful rules, less what the session excludes already, and those that Spark must have. */
  def shorten(session: SparkSession): Unit = {
    val optimizer = session.sessionState.optimizer
    val rules = optimizer.defaultBatches.flatMap(_.rules.map(_.ruleName)).distinct
    val needless = rules.filterNot(rule => optimizer.nonExcludableRules.contains(rule) || Useful.contains(rule.stripPrefix(Optimizer)))
    val before = session.conf.getOption(Excluded).toSeq
    session.conf.set(Excluded, (before ++ needless).mkString(","))
  }
}
