/** Deciding: what a policy says of a row, as steps/policy.py. */
package headrace.deciding

import java.math.{BigDecimal, RoundingMode}
import java.util.ArrayList

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.json.JsonMapper
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection}

/** What is said of a row. */
final class Decision(
    val decision: String,
    val reasons: ArrayList[String],
    val score: java.lang.Double, // null: there is no model
    val rulesVersion: String,
    val modelVersion: String,
    val seen: String
)

final class Rule(val action: Int, val said: String, val last: Boolean, val holds: Int, val fault: Int)

final class Threshold(val action: Int, val least: Double, val words: String)

/** A policy as it was published. `asked`: what its rules and its model ask of a row, bound to the row; a rule knows the
  * places of its condition and of the words of a misfit (-1: there can be none), the model's are the last ones. */
final class Policy(
    val asked: Seq[Expression],
    val rules: Array[Rule],
    val thresholds: Array[Threshold], // the strictest first
    val features: Array[String],
    val model: Trees, // null: none
    val rulesVersion: String,
    val modelVersion: String,
    val seen: String
)

object Policy {
  /** From the mildest to the strictest. */
  val ACTIONS: Array[String] = Array("allow", "review", "decline")
  final val NOTHING = "nothing is published"

  // A threshold may be infinite: it parts what is there from what is missing.
  private[headrace] val json = JsonMapper.builder.enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS).build()

  def parse(text: String, asked: Seq[Expression]): Policy = {
    val node = json.readTree(text)
    def each(name: String): Iterator[JsonNode] = node.get(name).elements.asScala
    new Policy(
      asked,
      each("rules").map(r => new Rule(action(r), r.get("said").asText, r.get("final").asBoolean, r.get("holds").asInt, r.get("fault").asInt)).toArray,
      each("thresholds").map(t => new Threshold(action(t), t.get("least").asDouble, t.get("words").asText)).toArray,
      each("features").map(_.asText).toArray,
      if (node.get("model").isNull) null else Trees.parse(node.get("model")),
      node.get("rules_version").asText,
      node.get("model_version").asText,
      node.get("seen").asText
    )
  }

  private def action(node: JsonNode): Int = ACTIONS.indexOf(node.get("action").asText)

  /** As Python writes it with so many digits after the point. */
  def rounded(score: Double, digits: Int): String = new BigDecimal(score).setScale(digits, RoundingMode.HALF_EVEN).toPlainString
}

/** A policy ready to be asked, by one task. */
final class Judge(policy: Policy) {
  // One projection for all rules: what several of them compute is computed once.
  private val asked = UnsafeProjection.create(policy.asked)
  private val values = new Array[Double](policy.features.length)

  def decide(row: InternalRow): Decision = {
    val told = asked(row)
    val reasons = new ArrayList[String]
    var (strictest, ended, i) = (0, false, 0)
    while (i < policy.rules.length && !ended) {
      val rule = policy.rules(i)
      if (rule.fault >= 0 && !told.isNullAt(rule.fault)) reasons.add(told.getUTF8String(rule.fault).toString)
      else if (!told.isNullAt(rule.holds) && told.getBoolean(rule.holds)) {
        strictest = math.max(strictest, rule.action)
        reasons.add(rule.said)
        ended = rule.last
      }
      i += 1
    }
    val score: java.lang.Double = if (policy.model == null) null else scored(told)
    if (score != null && !ended) policy.thresholds.find(score >= _.least).foreach { reached =>
      strictest = math.max(strictest, reached.action)
      val raised = policy.model.raisedBy(values).map(policy.features(_))
      val because = if (raised.isEmpty) "" else raised.mkString(", raised by ", ", ", "")
      reasons.add(s"model: ${Policy.rounded(score, 4)}${reached.words}$because")
    }
    new Decision(Policy.ACTIONS(strictest), reasons, score, policy.rulesVersion, policy.modelVersion, policy.seen)
  }

  private def scored(told: InternalRow): Double = {
    val first = policy.asked.length - policy.features.length
    var i = 0
    while (i < policy.features.length) {
      values(i) = if (told.isNullAt(first + i)) Double.NaN else told.getDouble(first + i)
      i += 1
    }
    policy.model.score(values)
  }
}
