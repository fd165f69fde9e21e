/** Asking a model: as steps/trees.py does it, bit for bit. */
package headrace.deciding

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

final class Tree(
    feature: Array[Int],
    threshold: Array[Double],
    defaultLeft: Array[Boolean],
    missing: Array[Int],
    left: Array[Int],
    right: Array[Int],
    leaf: Array[Double],
    inner: Array[Double]
) {
  private val root = if (feature.isEmpty) -1 else 0

  /** The leaf that these values lead to. */
  def leafOf(values: Array[Double]): Double = {
    var node = root
    while (node >= 0) node = childOf(node, values)
    leaf(~node)
  }

  /** Adds to each feature what its splits added on the way to the leaf. */
  def add(values: Array[Double], added: Array[Double]): Unit = {
    var node = root
    while (node >= 0) {
      val child = childOf(node, values)
      added(feature(node)) += (if (child >= 0) inner(child) else leaf(~child)) - inner(node)
      node = child
    }
  }

  private def childOf(node: Int, values: Array[Double]): Int = {
    var value = values(feature(node))
    if (value.isNaN && missing(node) != Tree.NAN) value = 0.0
    val absent =
      if (missing(node) == Tree.NAN) value.isNaN
      else missing(node) == Tree.ZERO && -Tree.NEARLY_ZERO <= value && value <= Tree.NEARLY_ZERO
    val goesLeft = if (absent) defaultLeft(node) else value <= threshold(node)
    if (goesLeft) left(node) else right(node)
  }
}

object Tree {
  private final val ZERO = 1
  private final val NAN = 2
  private final val NEARLY_ZERO = 1.0000000180025095e-35

  def parse(node: JsonNode): Tree = {
    def whole(name: String): Array[Int] = node.get(name).elements.asScala.map(_.asInt).toArray
    def real(name: String): Array[Double] = node.get(name).elements.asScala.map(_.asDouble).toArray
    new Tree(
      whole("feature"),
      real("threshold"),
      node.get("default_left").elements.asScala.map(_.asBoolean).toArray,
      whole("missing"),
      whole("left"),
      whole("right"),
      real("leaf"),
      real("inner")
    )
  }
}

/** `sigmoid` NaN: the sum is the score. */
final class Trees(trees: Array[Tree], sigmoid: Double, average: Boolean) {

  /** The sum of the trees, in their order. */
  def raw(values: Array[Double]): Double = {
    var total = 0.0
    var i = 0
    while (i < trees.length) {
      total += trees(i).leafOf(values)
      i += 1
    }
    total
  }

  /** The features that raised the score most, at most three. */
  def raisedBy(values: Array[Double]): Array[Int] = {
    val added = new Array[Double](values.length)
    trees.foreach(_.add(values, added))
    added.indices.filter(added(_) > 0).sortBy(-added(_)).take(3).toArray
  }

  def score(values: Array[Double]): Double = {
    val total = if (average) raw(values) / trees.length else raw(values)
    // Not Math.exp: that one may differ from machine to machine.
    if (sigmoid.isNaN) total else 1.0 / (1.0 + StrictMath.exp(-sigmoid * total))
  }
}

object Trees {
  /** From `{"trees": [...], "sigmoid": 1.0 or null, "average": false}`. */
  def parse(node: JsonNode): Trees = new Trees(
    node.get("trees").elements.asScala.map(Tree.parse).toArray,
    if (node.get("sigmoid").isNull) Double.NaN else node.get("sigmoid").asDouble,
    node.get("average").asBoolean
  )
}
