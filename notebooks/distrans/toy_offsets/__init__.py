"""DisTrans, Section 3 and Figure 2: the two toy problems that motivate an offset for each client.

(a) Cosine. Two clients, ``y = cos(w_k x) + noise`` with x in R, model ``f(x) = cos(w x)``, squared loss.
(b) Linear. Two clients, ``y = w_k . x + noise`` with x in R^2, model ``f(x) = w . x`` without a bias, squared
    loss, trained by federated averaging.

An offset replaces a client's input x by ``x' = x + (p x + q)`` with a scale p and a shift q.

What an offset can do, by algebra. Write ``s = 1 + p``.

* A scale p that both clients share changes the unit of w and nothing else:
  ``w x' = (s w) (x + q / s)``. So the loss at (w, p, q) is the loss at (s w, 0, q / s).
* (b) With mean ``m_k`` and covariance ``S_k`` of client k's inputs, its expected loss is
  ``(s w - w_k)' S_k (s w - w_k) + (w . q_k - (w_k - s w) . m_k)^2 + noise variance``.
  The shift enters by ``w . q_k`` alone: it is a private bias. It removes the second term at best. The first
  term stays, and if ``m_k = 0`` a shift can only add to it.
* (a) With x ~ N(m, d^2) a shift adds ``w q`` to the phase of the cosine. If ``m = 0`` the term in which the
  model agrees with the labels, ``-cos(w q) (exp(-d^2 (s w - w_k)^2 / 2) + exp(-d^2 (s w + w_k)^2 / 2))``,
  only shrinks by it; if m is far from 0, a phase can make up for ``(w_k - s w) m``.

As printed
  1. p is fixed and the same at both clients. In (a) q is found by brute force, in (b) q and w by SGD at each
     client.
  2. (a) x is drawn from a Gaussian; (b) each of the two dimensions from a normal distribution. The noise has
     mean 0.
  3. Figure 2 shows the squared training loss against w (a) and against the sum of w's two dimensions (b).

Left open, our choice
  1. Whether the offset is added to x or stands in its place. Added: the introduction speaks of "an offset
     that is added to the local data". In its place would be the same inputs with p one larger.
  2. The centre and spread of x, the true weights, p, the noise and all sizes: arguments. The paper prints no
     number for Figure 2.
  3. What the brute force minimises: ``aim="gap"``, the root mean square difference of the two clients'
     losses over the grid of w (the text speaks of this difference), or ``aim="loss"``, the smallest mean
     loss that one shared w can have.
  4. One number q for each client in (a), one vector q in R^2 for each client in (b).
  5. (b) An offset stays at its client. For each mini-batch the offset steps first, then the model
     (Algorithm 1). The curve of Figure 2b is taken as the path of the aggregate over the rounds.
  6. ``learn=("p", "q")`` lets each client learn its own scale, one for each dimension. The paper does not do
     this.
"""

from toy_offsets.pictures import answers, figure, sentences, table
from toy_offsets.training import cosine_study, linear_study

__all__ = ["answers", "cosine_study", "figure", "linear_study", "sentences", "table"]
